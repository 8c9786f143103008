"""A replica is judged by the time in which the supervisor itself ran."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from dragoman_worker.process import restarts
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import Replica
from dragoman_worker.process.exits import EXITS_AFTER_S, HALT_WITHIN_S, Exit
from dragoman_worker.process.journal import Crashes
from dragoman_worker.process.placement import Place, Shared
from dragoman_worker.process.probes import ProbeAnswer
from dragoman_worker.process.restarts import ReplicaRestarter


async def test_a_clock_that_jumps_between_two_probes_counts_as_one_unanswered_probe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A supervisor that was stopped (SIGSTOP) or suspended did not wait during that time."""
    probes = 0

    async def silent(*_: Any) -> ProbeAnswer:
        nonlocal probes
        probes += 1
        return ProbeAnswer()

    hours = count(step=3_600.0)
    monkeypatch.setattr(restarts, "ask", silent)
    monkeypatch.setattr(restarts, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    replica = ready_replica()
    await asyncio.wait_for(restarter(tmp_path)._watch(replica), 30)
    assert replica.killed.is_set()
    assert probes == 3, "6 s, in probes that count for at most 2.5 s each"


async def test_a_replica_that_answers_503_has_time_to_halt_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Killed at 60 s, it would leave claims behind; its own halt at 300 s releases them."""
    killed_at = await time_of_kill(
        monkeypatch, tmp_path, lambda _: ProbeAnswer(503, "not yet: x\n")
    )
    assert EXITS_AFTER_S + HALT_WITHIN_S < killed_at < 500


async def test_a_replica_whose_failing_check_changes_is_not_stuck(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(at: float) -> ProbeAnswer:
        return ProbeAnswer(503, f"not yet: {'x' if at < 400 else 'y'}\n")

    assert await time_of_kill(monkeypatch, tmp_path, answer) > 400 + EXITS_AFTER_S


async def test_a_failing_replica_that_becomes_silent_is_killed_after_the_limit_for_silence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(at: float) -> ProbeAnswer:
        return ProbeAnswer(503, "not yet: x\n") if at < 100 else ProbeAnswer()

    assert 104 <= await time_of_kill(monkeypatch, tmp_path, answer) < 115


@pytest.mark.parametrize(
    ("settled", "ready_s", "recovered"), [(True, 1, True), (False, 61, True), (False, 30, False)]
)
async def test_a_replica_has_recovered_once_it_settled_a_job_or_was_ready_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    settled: bool,
    ready_s: float,
    recovered: bool,
) -> None:
    made, replica = restarter(tmp_path), ready_replica()
    if settled:
        replica.settled.set()
    made._ready_at = 100.0
    now = SimpleNamespace(monotonic=lambda: 100.0 + ready_s)
    monkeypatch.setattr(restarts, "time", now)
    assert made._has_recovered(replica) is recovered


async def test_a_replica_that_never_was_ready_has_not_recovered(tmp_path: Path) -> None:
    replica = ready_replica()
    replica.ready.clear()
    assert not restarter(tmp_path)._has_recovered(replica)


async def test_a_stop_does_not_wait_for_an_orphan_that_the_kernel_does_not_release(
    tmp_path: Path,
) -> None:
    made, asked, released = restarter(tmp_path), asyncio.Event(), asyncio.Event()

    async def kill_orphans(_: Any) -> None:
        asked.set()
        await released.wait()

    made._children = stub(kill_orphans=kill_orphans)
    killing = asyncio.create_task(made._kill_orphans())
    await asked.wait()
    made._shared.stopping.set()
    await asyncio.wait_for(killing, 30)


async def test_a_start_waits_until_the_orphans_are_gone(tmp_path: Path) -> None:
    made, released = restarter(tmp_path), asyncio.Event()

    async def kill_orphans(_: Any) -> None:
        await released.wait()

    made._children = stub(kill_orphans=kill_orphans)
    killing = asyncio.create_task(made._kill_orphans())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not killing.done()
    released.set()
    await asyncio.wait_for(killing, 30)


async def time_of_kill(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    answer: Callable[[float], ProbeAnswer],
) -> float:
    """Watch a replica that answers by `answer(seconds)`; return the second of the kill."""
    now = 0.0

    async def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def asked(*_: Any) -> ProbeAnswer:
        return answer(now)

    monkeypatch.setattr(restarts, "ask", asked)
    monkeypatch.setattr(restarts, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(asyncio, "sleep", passes)
    await restarter(folder)._watch(ready_replica())
    return now


def ready_replica() -> Any:
    killed, ready, settled = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ready.set()
    return SimpleNamespace(ready=ready, settled=settled, kill=killed.set, killed=killed)


def stub(**members: Any) -> Any:
    return SimpleNamespace(**members)


async def test_a_process_that_the_system_does_not_allow_counts_as_a_failed_start(
    tmp_path: Path,
) -> None:
    """Under a limit of processes or file descriptors the other replicas go on, and then drain."""

    def start(_: int, *, fork: bool) -> Replica:
        assert fork
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    made, settled = restarter(tmp_path), asyncio.Event()
    settled.set()
    server = stub(prepare=lambda: False, settled=settled)
    made._children = stub(latest=lambda _: None, start=start, fork_server=server)
    made._backoff = Backoff(max_s=0.001, starts=3)
    result = await asyncio.wait_for(made.run(), 30)
    why = "cannot be started: Resource temporarily unavailable"
    assert result == Exit(1, f"replica 0 failed 3 starts in a row; the last: {why}")


def shared_by(*gpus: str) -> Shared:
    return Shared([Place(gpus=(name,)) for name in gpus])


def test_one_gpu_ends_the_run_as_soon_as_one_of_its_replicas_gives_up() -> None:
    assert shared_by("0", "0").gave_up(1, Exit(1, "x")) == Exit(1, "x")
    assert Shared().gave_up(0, Exit(2, "x")) == Exit(2, "x")


def test_of_several_gpus_the_last_replica_that_gives_up_ends_the_run() -> None:
    shared = shared_by("0", "0", "1")
    assert shared.gave_up(1, Exit(1, "x")) is None
    assert shared.gave_up(1, Exit(1, "x")) is None
    assert shared.gave_up(2, Exit(1, "y")) is None
    assert shared.gave_up(0, Exit(1, "z")) is not None


def test_a_replica_that_became_ready_has_not_given_up() -> None:
    shared = shared_by("0", "1")
    assert shared.gave_up(1, Exit(1, "x")) is None
    shared.became_ready(1)
    assert shared.gave_up(0, Exit(1, "x")) is None
    assert shared.gave_up(1, Exit(1, "x")) is not None


@pytest.mark.parametrize(("statuses", "status"), [((2, 2), 2), ((1, 2), 1), ((2, 1), 1)])
def test_the_run_ends_with_2_only_if_a_setting_would_help_on_every_gpu(
    statuses: tuple[Literal[1, 2], Literal[1, 2]], status: int
) -> None:
    """A service manager starts a worker again after 1, not after 2."""
    shared = shared_by("0", "1")
    shared.gave_up(0, Exit(statuses[0], "x"))
    result = shared.gave_up(1, Exit(statuses[1], "y"))
    assert result is not None
    assert result.status == status


@pytest.mark.parametrize(("gpus", "name"), [((), ""), (("1",), "GPU 1"), (("2", "3"), "GPU 2, 3")])
def test_a_place_is_named_by_its_gpus(gpus: tuple[str, ...], name: str) -> None:
    assert Place(gpus=gpus).name == name


def restarter(folder: Path) -> ReplicaRestarter:
    return ReplicaRestarter(
        0,
        place=Place(),
        children=stub(socket=lambda _: Path("0.sock")),
        shared=Shared(),
        backoff=Backoff(),
        crashes=Crashes(folder),
        stuck_after_s=6,
        start_within_s=60,
        restarted=lambda: None,
    )
