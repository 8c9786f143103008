"""Coalescing of equal units in flight in one process: one is generated, the others share it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from dragoman_worker.ports import Remembered

SHARED_VERDICTS: Final = frozenset({"ok", "warn"})
"""Only such answers are shared and remembered."""


class Turn:
    """The turn of one unit: either `shared` is an equal unit's answer, or it must generate."""

    __slots__ = ("_share", "shared")

    def __init__(
        self,
        shared: Remembered | None = None,
        share: Callable[[Remembered], None] | None = None,
    ) -> None:
        self.shared = shared
        self._share = share

    def share(self, translation: Remembered) -> None:
        """Give the answer to the units that wait; ignored unless its verdict is ok or warn."""
        if self._share is not None and translation.quality in SHARED_VERDICTS:
            self._share(translation)


@dataclass(slots=True, eq=False)
class _Flight:
    """The equal units of one key: those that generate, and those that wait for an answer."""

    leaders: int = 1
    waiting: deque[asyncio.Future[Remembered | None]] = field(default_factory=deque)
    answer: Remembered | None = None

    def share(self, translation: Remembered) -> None:
        self.answer = translation
        while self.waiting:
            _resolve(self.waiting.popleft(), translation)

    def promote(self, most: int) -> None:
        """Let up to `most` waiting units generate; those that are cancelled do not count."""
        while most and self.waiting:
            if _resolve(self.waiting.popleft(), None):
                self.leaders += 1
                most -= 1


class Coalesced:
    """The units in flight, by their memory key. Event loop only.

    The first unit of a key leads: it generates. Equal ones wait, without a permit, for its answer.
    A leader that is cancelled makes the next one lead. A leader whose answer cannot be shared makes
    the next two lead: units that fail alike then take log2(n) rounds instead of n. Nothing waits
    for a unit that waits, so leaders need nothing from their followers.
    """

    def __init__(self, joined: Callable[[], None] = lambda: None) -> None:
        """Call `joined` for each unit that gets an equal unit's answer."""
        self._flights: dict[bytes, _Flight] = {}
        self._joined = joined

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: bytes) -> bool:
        """Whether a unit of this key is in flight."""
        return key in self._flights

    @asynccontextmanager
    async def enter(self, key: bytes, *, quarantined: bool = False) -> AsyncIterator[Turn]:
        """Wait for an equal unit's answer, or for the turn to generate.

        Enter after the job's claim, and hold no permit: the leader may need it. A `quarantined`
        unit neither leads nor follows: during its round no other leader can enter the engine, and
        a suspect's followers would wait for its round.
        """
        if quarantined:
            yield Turn()
            return
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
        else:
            shared = flight.answer or await self._follow(key, flight)
            if shared is not None:
                self._joined()
                yield Turn(shared)
                return
        promotes = 2
        try:
            yield Turn(share=flight.share)
        except asyncio.CancelledError:
            promotes = 1
            raise
        finally:
            self._leave(key, flight, promotes)

    async def _follow(self, key: bytes, flight: _Flight) -> Remembered | None:
        """Return the shared answer; None if this unit leads now."""
        answer: asyncio.Future[Remembered | None] = asyncio.get_running_loop().create_future()
        flight.waiting.append(answer)
        try:
            return await answer
        except asyncio.CancelledError:
            if not answer.cancelled() and answer.result() is None:  # promoted just before
                self._leave(key, flight, 1)
            raise

    def _leave(self, key: bytes, flight: _Flight, promotes: int) -> None:
        flight.leaders -= 1
        if flight.answer is None:
            flight.promote(promotes)
        if not flight.leaders:
            del self._flights[key]


def _resolve(future: asyncio.Future[Remembered | None], answer: Remembered | None) -> bool:
    if future.done():
        return False
    future.set_result(answer)
    return True
