"""Tests of the judge process in trouble: killed, hanging, out of memory, too slow, orphaned."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest
from prometheus_client import CollectorRegistry

from dragoman_text.verdicts import Candidate, Judgement
from dragoman_worker.errors import Halt
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.event_loop import run_loop
from dragoman_worker.quality.judge import ProcessJudge
from support.fakes import odd_gates, slow_gates
from support.processes.child_process import argv_of
from support.processes.waiting import eventually

TESTS = Path(odd_gates.__file__).parents[2]
FINE = Candidate("Hello.", "Hallo.", "de")
Opened = Callable[..., ProcessJudge]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    """Make judges with odd gates, closed at the end of the test."""
    made: list[ProcessJudge] = []

    def make(timeout_s: float = 60.0, gates: str = odd_gates.NAME) -> ProcessJudge:
        metrics = Metrics(CollectorRegistry())
        made.append(ProcessJudge(timeout_s=timeout_s, metrics=metrics, gates=gates))
        return made[-1]

    yield make
    for judge in made:
        await judge.close()


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if any("judge_child" in argument for argument in argv_of(child))
    ]


def restarts(judge: ProcessJudge) -> float | None:
    registry = judge._metrics.registry
    return registry.get_sample_value("dragoman_judge_restarts_total")


async def judged(judge: ProcessJudge, *sources: str) -> list[Judgement | None]:
    return await asyncio.gather(
        *(judge.judge(Candidate(source, "Hallo.", "de")) for source in sources)
    )


@pytest.mark.parametrize("deadly", ["#kill", "#memory"])
async def test_only_the_text_that_kills_the_process_is_unjudged(
    opened: Opened, deadly: str
) -> None:
    judge = opened()
    found = await judged(judge, "one", deadly, "two", "three")
    assert [each is None for each in found] == [False, True, False, False]
    assert restarts(judge) == 2


async def test_only_the_text_that_hangs_is_unjudged_however_long_a_start_takes(
    opened: Opened,
) -> None:
    judge = opened(timeout_s=3.0, gates=slow_gates.NAME)
    await judge.ready()
    found = await judged(judge, "one", "#hang", "two", "three")
    assert [each is None for each in found] == [False, True, False, False]


async def test_a_process_that_is_killed_between_two_answers_is_replaced(opened: Opened) -> None:
    judge = opened()
    assert await judge.judge(FINE) is not None
    [child] = children()
    child.kill()
    await eventually(lambda: restarts(judge) == 1, timeout_s=30, what="the loss is seen")
    assert await judge.judge(FINE) is not None


async def test_a_process_that_is_killed_while_it_starts_is_replaced(opened: Opened) -> None:
    judge = opened()
    answer = asyncio.ensure_future(judge.judge(FINE))
    await eventually(lambda: bool(children()), timeout_s=30, what="a child")
    children()[0].kill()
    assert await answer is not None


async def test_a_stopped_process_is_replaced(opened: Opened) -> None:
    judge = opened(timeout_s=3.0)
    await judge.ready()
    os.kill(children()[0].pid, signal.SIGSTOP)
    assert await judge.judge(FINE) is not None


async def test_signals_to_the_process_group_leave_it_alone(opened: Opened) -> None:
    judge = opened()
    await judge.ready()
    [child] = children()
    for number in (signal.SIGINT, signal.SIGTERM):
        child.send_signal(number)
    assert await judge.judge(FINE) is not None
    assert restarts(judge) == 0


async def test_a_process_that_never_starts_blocks_no_job(opened: Opened) -> None:
    judge = opened(timeout_s=0.2, gates="no_such_module:judge")
    assert await judge.judge(FINE) is None
    assert await judge.detect(["Hallo."], None) == [None]


async def test_the_start_of_a_worker_fails_if_the_judge_cannot_start(opened: Opened) -> None:
    with pytest.raises(Halt, match="judge"):
        await opened(gates="no_such_module:judge").ready()


async def test_cancelled_judgements_leave_the_others_alone(opened: Opened) -> None:
    judge = opened()
    await judge.ready()
    asked = [asyncio.ensure_future(judged(judge, "#slow")) for _ in range(20)]
    gone = [asyncio.ensure_future(judge.judge(FINE)) for _ in range(1_000)]
    await asyncio.sleep(0)
    for each in gone:
        each.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    assert all([(await each)[0] for each in asked])
    assert await judge.judge(FINE) is not None


async def test_large_answers_to_a_slow_process_neither_block_nor_get_lost(opened: Opened) -> None:
    judge = opened()
    await judge.ready()
    text = "#slow " + 128 * 1024 * "a"
    asked = asyncio.gather(*(judge.judge(Candidate(text, text, "de")) for _ in range(64)))
    found = await asked
    assert all(each is not None and each.text == text for each in found)


async def test_closing_answers_what_is_open_and_leaves_no_process(opened: Opened) -> None:
    judge = opened()
    await judge.ready()
    asked = asyncio.ensure_future(judged(judge, "#hang", "one"))
    await asyncio.sleep(0)
    await judge.close()
    assert await asked == [None, None]
    assert await judge.judge(FINE) is None
    assert not children()


async def test_closing_while_it_starts_leaves_no_process(opened: Opened) -> None:
    judge = opened()
    asked = asyncio.ensure_future(judge.judge(FINE))
    await eventually(lambda: bool(children()), timeout_s=30, what="a child")
    await judge.close()
    assert await asked is None
    assert not children()


async def test_without_a_request_there_is_no_process(opened: Opened) -> None:
    judge = opened()
    await judge.close()
    assert not children()


_PARENT = """
import asyncio, sys
from prometheus_client import CollectorRegistry
from dragoman_worker.metrics import Metrics
from dragoman_text.verdicts import Candidate
from dragoman_worker.process.event_loop import run_loop
from dragoman_worker.quality.judge import ProcessJudge

async def main():
    judge = ProcessJudge(
        timeout_s=60, metrics=Metrics(CollectorRegistry()), gates=sys.argv[1]
    )
    await judge.ready()
    print(judge._process.pid, flush=True)
    await judge.judge(Candidate("#hang", "", "de"))

run_loop(main())
"""


async def test_a_busy_process_dies_with_its_parent() -> None:
    with subprocess.Popen(  # noqa: ASYNC220  it starts in milliseconds
        [sys.executable, "-c", _PARENT, odd_gates.NAME], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(await asyncio.to_thread(parent.stdout.readline)))
        parent.kill()
    try:
        await eventually(lambda: _gone(child), timeout_s=30, what="the judge process has gone")
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def _gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_it_works_on_the_loop_of_the_worker() -> None:
    async def main() -> list[Judgement | None]:
        judge = ProcessJudge(
            timeout_s=60, metrics=Metrics(CollectorRegistry()), gates=odd_gates.NAME
        )
        try:
            return await judged(judge, "one", "#kill", "two")
        finally:
            await judge.close()

    found = run_loop(main())
    assert [each is None for each in found] == [False, True, False]
    assert not children()
