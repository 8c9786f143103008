"""Measurement of event loop stalls: times in which the loop does not run its timers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

TICK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Stall:
    """Longest delay of a timer, and most CPU of the loop's thread between two ticks.

    On an overloaded machine the delay grows with the work of other programs; the CPU time does not.
    """

    late_s: float = 0.0
    cpu_s: float = 0.0


class StallClock:
    """A 20 ms timer that keeps its longest delay; sampled delays would miss most stalls."""

    def __init__(self) -> None:
        self._longest = self._before = Stall()
        self._due = self._cpu = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Tick until `stop`."""
        self._due = time.monotonic() + TICK_S
        self._cpu = time.thread_time()
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()

    def read(self) -> Stall:
        """Return the longest stall since the last call but one: two calls report every stall."""
        before, self._before = self._before, self._longest
        self._longest = Stall()
        return _longest(before, self._before)

    def _tick(self) -> None:
        late_s = time.monotonic() - self._due
        cpu_s = time.thread_time() - self._cpu
        if late_s > self._longest.late_s or cpu_s > self._longest.cpu_s:
            self._longest = _longest(self._longest, Stall(late_s, cpu_s))
        self.start()


def _longest(one: Stall, other: Stall) -> Stall:
    return Stall(max(one.late_s, other.late_s), max(one.cpu_s, other.cpu_s))
