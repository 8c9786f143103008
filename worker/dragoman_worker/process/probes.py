"""Requests for the HTTP pages of replicas over their Unix sockets, with a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

ASK_S: Final = 1.5
"""Timeout of a scrape: with a replica that does not answer, a scrape of all takes below 2 s."""
PROBE_S: Final = 0.8
"""Timeout of a probe: Kubernetes waits for one second by default."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """HTTP status and text of a replica's page; status 0 if there was no answer."""

    status: int = 0
    text: str = ""

    @property
    def ok(self) -> bool:
        """Whether the status is 200."""
        return self.status == 200

    @property
    def reason(self) -> str:
        """The failing checks in a few words, or "no answer"."""
        return self.text.strip().removeprefix("not yet: ") if self.status else "no answer"


async def ask(socket: Path, path: str, within_s: float = ASK_S) -> ProbeAnswer:
    """Request the page at `path` from the replica that listens on `socket`."""
    try:
        async with (
            asyncio.timeout(within_s),
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session,
            session.get(f"http://replica{path}") as response,
        ):
            return ProbeAnswer(response.status, await response.text())
    except (OSError, aiohttp.ClientError):  # TimeoutError is an OSError
        return ProbeAnswer()


async def ask_all(
    sockets: Mapping[int, Path], path: str, *, within_s: float = ASK_S
) -> dict[int, ProbeAnswer]:
    """Request the same page from all replicas at once; return the answers by number."""
    answers = await asyncio.gather(*(ask(place, path, within_s) for place in sockets.values()))
    return dict(zip(sockets, answers, strict=True))


async def ask_for_one(
    sockets: Mapping[int, Path], path: str, *, within_s: float
) -> dict[int, ProbeAnswer]:
    """Return the first ok answer, by number, as soon as it arrives; all answers if none is ok."""
    answers: dict[int, ProbeAnswer] = {}

    async def request(number: int, place: Path) -> int:
        answers[number] = await ask(place, path, within_s)
        return number

    requests = [asyncio.create_task(request(*each)) for each in sockets.items()]
    try:
        for answered in asyncio.as_completed(requests):
            number = await answered
            if answers[number].ok:
                return {number: answers[number]}
    finally:
        for task in requests:
            task.cancel()
    return dict(sorted(answers.items()))
