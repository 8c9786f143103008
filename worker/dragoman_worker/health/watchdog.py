"""Is the worker stuck? Watches signs of life, tells by name which are missing, and ends it.

Time is counted in ticks in which the watchdog itself ran, each worth at most `LONGEST_TICK_S`: a
process that was stopped (SIGSTOP), suspended or starved has not been stuck for that long.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_worker.errors import Halt
from dragoman_worker.log import logger, stacks
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.exits import HALT_WITHIN_S

TICK_S: Final = 1.0
LONGEST_TICK_S: Final = 2.0
_LOG_WITHIN_S: Final = 5.0
LOOP_BLOCKED_S: Final = 120.0
"""A loop that has run nothing for so long answers no probe either; sessions are long lost."""


class Stuck(Halt):
    """A sign of life has been missing for too long."""


@dataclass(frozen=True, slots=True)
class LivenessCheck:
    """One sign of life: any value that changes while all is well, None while nothing is due.

    After `remedy_after_s` without a change the remedy is tried, once; after `fails_after_s` the
    liveness page tells of it; after `ends_after_s` the worker ends.
    """

    name: str
    sign: Callable[[], Hashable | None]
    fails_after_s: float
    ends_after_s: float
    remedy: Callable[[], None] | None = None
    remedy_after_s: float = 0.0


@dataclass(slots=True)
class _Seen:
    sign: Hashable | None = None
    age_s: float = 0.0
    remedied: bool = False


class Watchdog:
    """Looks at all watches at every tick. Pure: its clock and its end are given to it."""

    def __init__(
        self,
        checks: Sequence[LivenessCheck],
        *,
        end: Callable[[Stuck], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seen = {watch.name: _Seen() for watch in checks}
        self._checks = tuple(checks)
        self._end = end
        self._clock = clock
        self._ticked_at = clock()
        self._log = logger()

    def tick(self) -> None:
        """Look once."""
        now = self._clock()
        passed = min(LONGEST_TICK_S, max(0.0, now - self._ticked_at))
        self._ticked_at = now
        for watch in self._checks:
            self._look(watch, self._seen[watch.name], passed)

    def checks(self) -> Mapping[str, bool]:
        """Whether each watch is well, by name."""
        return {
            watch.name: self._seen[watch.name].age_s < watch.fails_after_s for watch in self._checks
        }

    def _look(self, watch: LivenessCheck, seen: _Seen, passed: float) -> None:
        sign = watch.sign()
        if sign is None or sign != seen.sign:
            seen.sign, seen.age_s, seen.remedied = sign, 0.0, False
            return
        seen.age_s += passed
        if watch.remedy is not None and not seen.remedied and seen.age_s >= watch.remedy_after_s:
            seen.remedied = True
            self._log.error("watchdog_remedy", watch=watch.name, seconds=round(seen.age_s))
            watch.remedy()
        if seen.age_s >= watch.ends_after_s:
            self._end(Stuck(f"watchdog: {watch.name}: no sign of life for {seen.age_s:.0f} s"))


class LoopGuard:
    """A thread that ends the process when its event loop, or the end of the worker, hangs.

    Only a thread can: nothing else runs while the loop is blocked. It logs the stacks of all
    threads (places in the code, no values) and exits with status 1.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        end: Callable[[str], None] | None = None,
        blocked_s: float = LOOP_BLOCKED_S,
        halt_within_s: float = HALT_WITHIN_S,
    ) -> None:
        self._clock = clock
        self._end = end or _log_and_exit
        self._blocked_s = blocked_s
        self._halt_within_s = halt_within_s
        self._beats = 0
        self._stop = threading.Event()
        self._halting = False
        self._thread: threading.Thread | None = None
        self._looked_at = clock()
        self._beats_seen = 0
        self._silent_s = 0.0
        self._halting_s = 0.0

    def start(self) -> None:
        """Watch from now on."""
        self._thread = threading.Thread(target=self._run, name="loop-guard", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * TICK_S)

    def beat(self) -> None:
        """Called by the event loop at every tick: it still runs."""
        self._beats += 1

    def halting(self) -> None:
        """From now on the process has a bounded time to end."""
        self._halting = True

    def look(self) -> None:
        """Look once."""
        now = self._clock()
        passed = min(LONGEST_TICK_S, max(0.0, now - self._looked_at))
        self._looked_at = now
        self._silent_s = 0.0 if self._beats != self._beats_seen else self._silent_s + passed
        self._beats_seen = self._beats
        self._halting_s += passed if self._halting else 0.0
        if self._silent_s >= self._blocked_s:
            self._end(f"the event loop has run nothing for {self._silent_s:.0f} s")
        elif self._halting_s >= self._halt_within_s:
            self._end(f"the worker did not end within {self._halting_s:.0f} s")

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            self.look()


async def watching(watchdog: Watchdog, guard: LoopGuard, metrics: Metrics) -> None:
    """Tick for ever."""
    while True:
        await asyncio.sleep(TICK_S)
        guard.beat()
        watchdog.tick()
        for name, well in watchdog.checks().items():
            metrics.watchdog_failing.labels(name).set(not well)


def _log_and_exit(why: str) -> None:
    """Exit in any case, though nobody reads stderr and the log cannot be written."""
    end = threading.Timer(_LOG_WITHIN_S, os._exit, (1,))
    end.daemon = True
    end.start()
    logger().critical("watchdog_ended", reason=why, stacks=stacks())
    sys.stderr.flush()
    os._exit(1)
