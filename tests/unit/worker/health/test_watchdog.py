"""Is a stuck worker told from a stopped, a busy and a waiting one?"""

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
    """A watchdog of one watch, on a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sign: Hashable | None = "a"
        self.ended: list[Stuck] = []
        self.remedies = 0
        watch = LivenessCheck("hands", lambda: self.sign, 10.0, 30.0, self._remedy, 5.0)
        self.dog = Watchdog([watch], end=self.ended.append, clock=lambda: self.now)
        self.dog.tick()

    def _remedy(self) -> None:
        self.remedies += 1

    def run(self, seconds: int, step: float = 1.0) -> None:
        for _ in range(seconds):
            self.now += step
            self.dog.tick()

    @property
    def well(self) -> bool:
        return self.dog.checks()["hands"]


def test_a_missing_sign_is_remedied_then_told_then_ended() -> None:
    bench = Bench()
    bench.run(4)
    assert (bench.remedies, bench.well, bench.ended) == (0, True, [])
    bench.run(5)
    assert (bench.remedies, bench.well, bench.ended) == (1, True, [])
    bench.run(1)
    assert (bench.remedies, bench.well, bench.ended) == (1, False, [])
    bench.run(20)
    assert "hands" in str(bench.ended[0])


@pytest.mark.parametrize("sign", ["b", None])
def test_a_change_or_nothing_to_do_is_well_again(sign: str | None) -> None:
    bench = Bench()
    bench.run(29)
    assert not bench.well
    bench.sign = sign
    bench.run(1)
    assert bench.well
    bench.run(9)
    assert bench.well
    assert bench.ended == []


def test_while_nothing_is_due_time_does_not_count() -> None:
    bench = Bench()
    bench.sign = None
    bench.run(1_000)
    assert (bench.remedies, bench.well, bench.ended) == (0, True, [])


def test_a_process_that_was_stopped_has_not_been_stuck() -> None:
    bench = Bench()
    bench.run(1, step=3_600.0)
    assert bench.well
    bench.run(3, step=3_600.0)
    assert bench.well, "every tick counts for two seconds at most"
    assert bench.ended == []
    assert LONGEST_TICK_S < 10 / 4


class Guarded:
    """A guard on a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends: list[str] = []
        self.guard = LoopGuard(
            clock=lambda: self.now, end=self.ends.append, blocked_s=10, halt_within_s=5
        )

    def run(self, seconds: int, *, beats: bool, step: float = 1.0) -> None:
        for _ in range(seconds):
            self.now += step
            if beats:
                self.guard.beat()
            self.guard.look()


def test_a_loop_that_runs_nothing_any_more_ends_the_process() -> None:
    bench = Guarded()
    bench.run(100, beats=True)
    bench.run(9, beats=False)
    assert bench.ends == []
    bench.run(1, beats=False)
    assert "event loop" in bench.ends[0]


def test_a_halt_that_hangs_ends_the_process_although_the_loop_runs() -> None:
    bench = Guarded()
    bench.run(100, beats=True)
    bench.guard.halting()
    bench.run(4, beats=True)
    assert bench.ends == []
    bench.run(1, beats=True)
    assert "did not end" in bench.ends[0]


def test_a_stopped_process_is_not_ended_when_it_goes_on() -> None:
    bench = Guarded()
    bench.run(2, beats=False, step=3_600.0)
    bench.run(100, beats=True)
    assert bench.ends == []


def test_the_guard_of_a_blocked_loop_tells_where_it_hangs_and_exits() -> None:
    """In a process of its own: it does not survive."""
    program = (
        "import time, threading\n"
        "from dragoman_worker import log\n"
        "from dragoman_worker.health import watchdog\n"
        "from dragoman_worker.settings import LogSettings\n"
        "log.configure(LogSettings(), worker_id='w')\n"
        "guard = watchdog.LoopGuard(blocked_s=0.5)\n"
        "guard.start()\n"
        "def where_it_hangs(text): time.sleep(30)\n"
        "where_it_hangs('a letter nobody may read')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=25, check=False
    )
    assert done.returncode == 1
    told = json.loads(done.stderr)  # one line
    assert any("where_it_hangs" in place for place in told["stacks"]["MainThread"])
    assert "a letter" not in done.stderr


def test_a_guard_that_was_stopped_ends_nothing() -> None:
    ends: list[str] = []
    guard = LoopGuard(end=ends.append, blocked_s=0.0)
    guard.start()
    guard.stop()
    assert guard._thread is not None
    assert not guard._thread.is_alive()
