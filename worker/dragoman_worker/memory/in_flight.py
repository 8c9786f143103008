"""Coalescing of equal units in flight in one process: one is generated, the others share it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from dragoman_worker.ports import Remembered

SHARED_VERDICTS: Final = frozenset({"ok", "warn"})
"""Only such answers are shared and remembered."""
KEPT_S: Final = 1.0
"""How long an answer is shared with units that come after it: until the memory has written it."""
MOST_KEPT: Final = 10_000


@dataclass(slots=True, eq=False, weakref_slot=True)
class Flight:
    """The equal units of one key in flight. It lives as long as one of them refers to it.

    A unit leads from its permit to its answer, so nothing waits for a unit that waits. All others
    wait for permits of their own or, once they had one while a unit led, for its answer. Each
    answer that cannot be shared lets one more unit lead at once: units that fail alike then take
    log2(n) rounds instead of n.
    """

    answer: Remembered | None = None
    leaders: int = 0
    most_leaders: int = 1
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def may_lead(self) -> bool:
        """Whether a unit that has a permit is to generate the answer."""
        return self.leaders < self.most_leaders

    @contextmanager
    def lead(self) -> Iterator[None]:
        """Lead inside the context; at its end the followers go on."""
        self.leaders += 1
        fails = True
        try:
            yield
        except asyncio.CancelledError:
            fails = False
            raise
        finally:
            self.leaders -= 1
            if fails and self.answer is None:
                self.most_leaders += 1
            self._wake()

    async def follow(self) -> None:
        """Wait until there is an answer or a leader has left. Hold no permit: it may be needed."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        await woken

    def share(self, translation: Remembered) -> None:
        """Give the answer to all units of this flight."""
        self.answer = translation
        self._wake()

    def _wake(self) -> None:
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)
        self._waiting.clear()


class Coalesced:
    """The units in flight, by their memory key. Event loop only.

    An answer reaches the units that were in flight when it was given, and those that come within
    KEPT_S: a look-up in the memory may miss an answer that is still to be written there.
    """

    def __init__(
        self, joined: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Call `joined` for each unit that takes an equal unit's answer."""
        self._flights: WeakValueDictionary[bytes, Flight] = WeakValueDictionary()
        self._kept: deque[tuple[float, bytes, Flight]] = deque()
        self._clock = clock
        self.joined = joined

    def __len__(self) -> int:
        return len(self._flights)

    def join(self, key: bytes) -> Flight:
        """Return the flight of a unit's key. Join before the unit is looked up in the memory."""
        if self._kept:
            self._drop_old(self._clock() - KEPT_S)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight()
        return flight

    def share(self, key: bytes, flight: Flight, translation: Remembered) -> None:
        """Give an answer to the flight's units and to those of the key that come next."""
        flight.share(translation)
        self._flights[key] = flight
        self._kept.append((self._clock(), key, flight))
        if len(self._kept) > MOST_KEPT:
            self._drop_oldest()

    def _drop_old(self, before: float) -> None:
        while self._kept and self._kept[0][0] < before:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, key, flight = self._kept.popleft()
        if self._flights.get(key) is flight:
            del self._flights[key]
