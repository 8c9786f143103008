"""Does a keeper judge a replica by time in which it ran itself?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.process import restarts as restarter
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.crashes import Crashes
from dragoman_worker.process.exit_limits import ENDS_S, HALT_WITHIN_S
from dragoman_worker.process.probes import Answer
from dragoman_worker.process.restarts import ReplicaRestarter, Shared


async def test_a_clock_that_jumps_between_two_looks_is_one_look_of_silence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Stopped (SIGSTOP) or suspended, we have not been waiting for an answer all that time."""
    looks = 0

    async def deaf(*_: Any) -> Answer:
        nonlocal looks
        looks += 1
        return Answer()

    hours = count(step=3_600.0)
    monkeypatch.setattr(restarter, "ask", deaf)
    monkeypatch.setattr(restarter, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    replica = ready_replica()
    await asyncio.wait_for(a_keeper(tmp_path)._watch(replica), 30)
    assert replica.killed.is_set()
    assert looks == 3, "6 s, in looks that count for 2.5 s each at most"


async def test_one_that_says_it_is_unwell_is_left_to_end_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Killed at 60 s, it left its claims behind; its own end, at 300 s, gives them back."""
    looks: list[float] = []
    unwell = await looked_at(monkeypatch, tmp_path, lambda _: Answer(503, "not yet: x\n"), looks)
    assert ENDS_S + HALT_WITHIN_S < unwell < 500


async def test_one_whose_reason_changes_is_not_stuck_in_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(at: float) -> Answer:
        return Answer(503, f"not yet: {'x' if at < 400 else 'y'}\n")

    assert await looked_at(monkeypatch, tmp_path, answer, []) > 400 + ENDS_S


async def test_one_that_falls_silent_after_it_was_unwell_has_its_own_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(at: float) -> Answer:
        return Answer(503, "not yet: x\n") if at < 100 else Answer()

    assert 104 <= await looked_at(monkeypatch, tmp_path, answer, []) < 115


@pytest.mark.parametrize(
    ("settled", "ready_s", "waits_anew"), [(True, 1, True), (False, 61, True), (False, 30, False)]
)
async def test_a_replica_has_recovered_once_it_settled_a_job_or_was_ready_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    settled: bool,
    ready_s: float,
    waits_anew: bool,
) -> None:
    keeping, replica = a_keeper(tmp_path), ready_replica()
    if settled:
        replica.settled.set()
    keeping._ready_at = 100.0
    now = SimpleNamespace(monotonic=lambda: 100.0 + ready_s)
    monkeypatch.setattr(restarter, "time", now)
    assert keeping._has_recovered(replica) is waits_anew


async def test_one_that_never_was_ready_has_not_recovered(tmp_path: Path) -> None:
    replica = ready_replica()
    replica.ready.clear()
    assert not a_keeper(tmp_path)._has_recovered(replica)


async def looked_at(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    answer: Callable[[float], Answer],
    looks: list[float],
) -> float:
    """Watch one whose page answers so by the seconds of an own clock, and tell when it dies."""
    now = 0.0

    async def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def asked(*_: Any) -> Answer:
        looks.append(now)
        return answer(now)

    monkeypatch.setattr(restarter, "ask", asked)
    monkeypatch.setattr(restarter, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(asyncio, "sleep", passes)
    await a_keeper(folder)._watch(ready_replica())
    return now


def ready_replica() -> Any:
    killed, ready, settled = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ready.set()
    return SimpleNamespace(ready=ready, settled=settled, kill=killed.set, killed=killed)


def a_keeper(folder: Path) -> ReplicaRestarter:
    children: Any = SimpleNamespace(socket=lambda _: Path("0.sock"))
    return ReplicaRestarter(
        0,
        children=children,
        shared=Shared(),
        backoff=Backoff(),
        crashes=Crashes(folder),
        stuck_after_s=6,
        start_within_s=60,
        started_again=lambda: None,
    )
