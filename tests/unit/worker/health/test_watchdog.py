"""Tests that the watchdog distinguishes a stuck worker from a stopped, busy or waiting one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Hashable

import pytest

from dragoman_worker.health.watchdog import (
    LONGEST_TICK_S,
    LivenessCheck,
    LoopGuard,
    Stuck,
    Watchdog,
)


class Bench:
    """A watchdog with one check, and a clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sign: Hashable | None = "a"
        self.halts: list[Stuck] = []
        self.remedies = 0
        check = LivenessCheck("poll loop", lambda: self.sign, 10.0, 30.0, self._remedy, 5.0)
        self.watchdog = Watchdog([check], halt=self.halts.append, clock=lambda: self.now)
        self.watchdog.tick()

    def _remedy(self) -> None:
        self.remedies += 1

    def run(self, seconds: int, step: float = 1.0) -> None:
        for _ in range(seconds):
            self.now += step
            self.watchdog.tick()

    @property
    def passes(self) -> bool:
        return self.watchdog.checks()["poll loop"]


def test_a_missing_sign_is_remedied_then_fails_the_check_then_halts_the_worker() -> None:
    bench = Bench()
    bench.run(4)
    assert (bench.remedies, bench.passes, bench.halts) == (0, True, [])
    bench.run(5)
    assert (bench.remedies, bench.passes, bench.halts) == (1, True, [])
    bench.run(1)
    assert (bench.remedies, bench.passes, bench.halts) == (1, False, [])
    bench.run(20)
    assert "poll loop" in str(bench.halts[0])


@pytest.mark.parametrize("sign", ["b", None])
def test_a_check_passes_again_after_a_change_or_while_nothing_is_due(sign: str | None) -> None:
    bench = Bench()
    bench.run(29)
    assert not bench.passes
    bench.sign = sign
    bench.run(1)
    assert bench.passes
    bench.run(9)
    assert bench.passes
    assert bench.halts == []


def test_time_does_not_count_while_nothing_is_due() -> None:
    bench = Bench()
    bench.sign = None
    bench.run(1_000)
    assert (bench.remedies, bench.passes, bench.halts) == (0, True, [])


def test_a_process_that_was_stopped_has_not_been_stuck() -> None:
    bench = Bench()
    bench.run(1, step=3_600.0)
    assert bench.passes
    bench.run(3, step=3_600.0)
    assert bench.passes, "every tick counts for two seconds at most"
    assert bench.halts == []
    assert LONGEST_TICK_S < 10 / 4


class Guarded:
    """A guard, and a clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.exits: list[str] = []
        self.guard = LoopGuard(
            clock=lambda: self.now, terminate=self.exits.append, blocked_s=10, halt_within_s=5
        )

    def run(self, seconds: int, *, beats: bool, step: float = 1.0) -> None:
        for _ in range(seconds):
            self.now += step
            if beats:
                self.guard.beat()
            self.guard.check()


def test_a_blocked_event_loop_exits_the_process() -> None:
    bench = Guarded()
    bench.run(100, beats=True)
    bench.run(9, beats=False)
    assert bench.exits == []
    bench.run(1, beats=False)
    assert "event loop" in bench.exits[0]


def test_a_hanging_halt_exits_the_process_although_the_loop_runs() -> None:
    bench = Guarded()
    bench.run(100, beats=True)
    bench.guard.halting()
    bench.run(4, beats=True)
    assert bench.exits == []
    bench.run(1, beats=True)
    assert "halt of the worker" in bench.exits[0]


def test_a_process_stopped_by_sigstop_survives_when_it_continues() -> None:
    bench = Guarded()
    bench.run(2, beats=False, step=3_600.0)
    bench.run(100, beats=True)
    assert bench.exits == []


def test_the_guard_of_a_blocked_loop_logs_the_stacks_and_exits() -> None:
    """Run in a child process, which exits."""
    program = (
        "import time, threading\n"
        "from dragoman_worker import log\n"
        "from dragoman_worker.health import watchdog\n"
        "from dragoman_worker.settings import LogSettings\n"
        "log.configure(LogSettings(), worker_id='w')\n"
        "guard = watchdog.LoopGuard(blocked_s=0.5)\n"
        "guard.start()\n"
        "def where_it_hangs(text): time.sleep(30)\n"
        "where_it_hangs('a private text')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=25, check=False
    )
    assert done.returncode == 1
    line = json.loads(done.stderr)  # one line
    assert any("where_it_hangs" in place for place in line["stacks"]["MainThread"])
    assert "a private text" not in done.stderr


def test_stopping_the_guard_stops_its_thread() -> None:
    exits: list[str] = []
    guard = LoopGuard(terminate=exits.append, blocked_s=0.0)
    guard.start()
    guard.stop()
    assert guard._thread is not None
    assert not guard._thread.is_alive()
