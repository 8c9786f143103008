"""What does a replica answer? One of its pages, over its socket, within a bound."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

ASK_S: Final = 1.5
"""A probe or a scrape that waits for a replica that does not answer still ends within 2 s."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A page of a replica; status 0 if there was no answer."""

    status: int = 0
    text: str = ""

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def reason(self) -> str:
        """Why it is not ok, in a few words."""
        return self.text.strip().removeprefix("not yet: ") if self.status else "no answer"


async def ask(socket: Path, path: str) -> Answer:
    """The page at `path` of the replica that listens at `socket`."""
    try:
        async with (
            asyncio.timeout(ASK_S),
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session,
            session.get(f"http://replica{path}") as response,
        ):
            return Answer(response.status, await response.text())
    except (OSError, aiohttp.ClientError):  # TimeoutError is an OSError
        return Answer()
