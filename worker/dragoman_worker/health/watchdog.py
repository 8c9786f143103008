"""Watchdog: finds a stuck worker by its missing signs of life, names them, and halts the worker.

Time is counted in ticks of the watchdog itself, each worth at most `LONGEST_TICK_S`: a process
that was stopped (SIGSTOP), suspended or starved of CPU has not been stuck for that time.
"""

from __future__ import annotations

import asyncio
import os
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
"""An event loop blocked for this long answers no probe, and its Kafka session is long lost."""


class Stuck(Halt):
    """A sign of life was missing for too long."""


@dataclass(frozen=True, slots=True)
class LivenessCheck:
    """A sign of life: any value that changes while the worker is healthy, None while none is due.

    After `remedy_after_s` without a change the remedy is tried once; after `fails_after_s` /livez
    reports the check as failing; after `halts_after_s` the worker halts.
    """

    name: str
    sign: Callable[[], Hashable | None]
    fails_after_s: float
    halts_after_s: float
    remedy: Callable[[], None] | None = None
    remedy_after_s: float = 0.0
    reason: Callable[[Hashable], str] | None = None
    """Returns why the worker halts, from the sign that has not changed."""


@dataclass(slots=True)
class _Seen:
    sign: Hashable | None = None
    age_s: float = 0.0
    remedied: bool = False


class Watchdog:
    """Evaluates all liveness checks at every tick. Pure: clock and halt are passed in."""

    def __init__(
        self,
        checks: Sequence[LivenessCheck],
        *,
        halt: Callable[[Stuck], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seen = {check.name: _Seen() for check in checks}
        self._checks = tuple(checks)
        self._halt = halt
        self._clock = clock
        self._ticked_at = clock()
        self._log = logger()

    def tick(self) -> None:
        """Evaluate every check once."""
        now = self._clock()
        passed = min(LONGEST_TICK_S, max(0.0, now - self._ticked_at))
        self._ticked_at = now
        for check in self._checks:
            self._evaluate(check, self._seen[check.name], passed)

    def checks(self) -> Mapping[str, bool]:
        """Return for each check, by name, whether it passes."""
        return {
            check.name: self._seen[check.name].age_s < check.fails_after_s for check in self._checks
        }

    def _evaluate(self, check: LivenessCheck, seen: _Seen, passed: float) -> None:
        sign = check.sign()
        if sign is None or sign != seen.sign:
            seen.sign, seen.age_s, seen.remedied = sign, 0.0, False
            return
        seen.age_s += passed
        if check.remedy is not None and not seen.remedied and seen.age_s >= check.remedy_after_s:
            seen.remedied = True
            check.remedy()
            self._log.error("watchdog_remedy", check=check.name, seconds=round(seen.age_s))
        if seen.age_s >= check.halts_after_s:
            reason = check.reason and check.reason(sign)
            silent = f"no sign of life for {seen.age_s:.0f} s"
            self._halt(Stuck(f"watchdog: {check.name}: {reason or silent}"))


class LoopGuard:
    """A thread that exits the process when the event loop is blocked or a halt hangs.

    Only a thread can do that: nothing else runs while the loop is blocked. It logs the stacks of
    all threads (code locations, no values) and exits with status 1.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        terminate: Callable[[str], None] | None = None,
        blocked_s: float = LOOP_BLOCKED_S,
        halt_within_s: float = HALT_WITHIN_S,
    ) -> None:
        self._clock = clock
        self._terminate = terminate or _log_and_exit
        self._blocked_s = blocked_s
        self._halt_within_s = halt_within_s
        self._beats = 0
        self._stop = threading.Event()
        self._halting = False
        self._thread: threading.Thread | None = None
        self._checked_at = clock()
        self._beats_seen = 0
        self._silent_s = 0.0
        self._halting_s = 0.0

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="loop-guard", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait until it has exited, up to two ticks."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * TICK_S)

    def beat(self) -> None:
        """Record that the event loop runs; the loop calls this at every tick."""
        self._beats += 1

    def halting(self) -> None:
        """Start the limited time in which the halting process must exit."""
        self._halting = True

    def check(self) -> None:
        """Check the event loop and the halt once."""
        now = self._clock()
        passed = min(LONGEST_TICK_S, max(0.0, now - self._checked_at))
        self._checked_at = now
        self._silent_s = 0.0 if self._beats != self._beats_seen else self._silent_s + passed
        self._beats_seen = self._beats
        self._halting_s += passed if self._halting else 0.0
        if self._silent_s >= self._blocked_s:
            self._terminate(f"the event loop was blocked for {self._silent_s:.0f} s")
        elif self._halting_s >= self._halt_within_s:
            self._terminate(f"the halt of the worker took more than {self._halting_s:.0f} s")

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            self.check()


async def run_ticks(watchdog: Watchdog, guard: LoopGuard, metrics: Metrics) -> None:
    """Tick forever, and export each check's state."""
    while True:
        await asyncio.sleep(TICK_S)
        guard.beat()
        watchdog.tick()
        for name, passes in watchdog.checks().items():
            metrics.watchdog_failing.labels(name).set(not passes)


def _log_and_exit(reason: str) -> None:
    """Log the stacks and exit, also if that takes long or fails."""
    forced = threading.Timer(_LOG_WITHIN_S, os._exit, (1,))
    forced.daemon = True
    forced.start()
    try:
        logger().critical("watchdog_exit", reason=reason, stacks=stacks())
    finally:
        os._exit(1)
