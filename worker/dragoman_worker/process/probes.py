"""What do replicas answer? Their pages, over their sockets, within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

ASK_S: Final = 1.5
"""For a scrape, which may be long: with a replica that does not answer it ends within 2 s."""
PROBE_S: Final = 0.8
"""For a probe: Kubernetes waits for one second unless it is told otherwise."""


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


async def ask(socket: Path, path: str, within_s: float = ASK_S) -> Answer:
    """The page at `path` of the replica that listens at `socket`."""
    try:
        async with (
            asyncio.timeout(within_s),
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session,
            session.get(f"http://replica{path}") as response,
        ):
            return Answer(response.status, await response.text())
    except (OSError, aiohttp.ClientError):  # TimeoutError is an OSError
        return Answer()


async def ask_all(
    sockets: Mapping[int, Path], path: str, *, within_s: float = ASK_S
) -> dict[int, Answer]:
    """The same page of each, asked at once, by number."""
    answers = await asyncio.gather(*(ask(place, path, within_s) for place in sockets.values()))
    return dict(zip(sockets, answers, strict=True))


async def ask_for_one(
    sockets: Mapping[int, Path], path: str, *, within_s: float
) -> dict[int, Answer]:
    """The first answer that is ok, by number, as soon as it is there; all of them if none is."""
    answers: dict[int, Answer] = {}

    async def asked(number: int, place: Path) -> int:
        answers[number] = await ask(place, path, within_s)
        return number

    asking = [asyncio.create_task(asked(*each)) for each in sockets.items()]
    try:
        for answered in asyncio.as_completed(asking):
            number = await answered
            if answers[number].ok:
                return {number: answers[number]}
    finally:
        for task in asking:
            task.cancel()
    return dict(sorted(answers.items()))
