"""A worker polls while it is full and while it drains, and none of its waits is without a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.wire import rfc3339
from dragoman_worker.backoff import pause_s
from dragoman_worker.errors import Halt, Unavailable
from dragoman_worker.job import worker as worker_module
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.retry import RetryPolicy
from dragoman_worker.kafka import fetching
from dragoman_worker.ports import Capacity, Claim, Delivery
from dragoman_worker.process.backoff import Backoff
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.local_jobs import LocalJobs
from support.fakes.local_kafka import MemoryConsumer
from support.fakes.traced import traced
from support.processes.waiting import eventually

LONGEST_WAIT_S = 30.0
"""Somebody who waits for a mended service waits this much longer at most."""


class CountedSource(MemoryConsumer):
    """Counts its polls, by whether they had capacity."""

    def __init__(self) -> None:
        super().__init__(poll_s=0.01)
        self.polls = {True: 0, False: 0}

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        self.polls[capacity.jobs > 0] += 1
        return await super().poll(capacity)


class GatedStore(LocalJobs):
    """Holds every finish until `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.finishing = 0

    async def finish(self, claim: Claim, result: TranslationResult) -> Any:
        self.finishing += 1
        await self.gate.wait()
        return await super().finish(claim, result)


# --- polls ----------------------------------------------------------------------------------------


async def test_a_full_worker_does_not_poll_in_a_busy_loop() -> None:
    consumer = CountedSource()
    core = Core(consumer=consumer, max_in_flight_jobs=1)
    released = core.engine.hold("one two")
    consumer.append(record())
    async with core.working():
        await core.inside("one two")
        polled = consumer.polls[False]
        for _ in range(1_000):  # turns of the loop, whatever time they take
            await asyncio.sleep(0)
        assert consumer.polls[False] - polled < 100
        released.set()
        await core.all_completed()


async def test_a_drain_polls_for_as_long_as_it_lasts() -> None:
    consumer = CountedSource()
    core = Core(consumer=consumer)
    released = core.engine.hold("one two")
    consumer.append(record())
    async with core.working() as worker:
        await core.inside("one two")
        worker.stop()
        polled = consumer.polls[False]
        await eventually(
            lambda: consumer.polls[False] > polled + 1, timeout_s=TIMEOUT_S, what="two polls"
        )
        released.set()
    assert core.state().status is JobStatus.COMPLETED


# --- ends -----------------------------------------------------------------------------------------


async def test_a_cancel_during_the_finish_comes_too_late_and_breaks_nothing() -> None:
    store = GatedStore()
    core = Core(store=store)
    core.consumer.append(record())
    async with core.working() as worker:
        await eventually(lambda: store.listening, timeout_s=TIMEOUT_S, what="a listener")
        await eventually(lambda: store.finishing, timeout_s=TIMEOUT_S, what="the finish")
        [job] = core.in_flight._by_key.values()
        assert not job.running
        core.store.cancel("a1")
        await eventually(lambda: job.cancelled, timeout_s=TIMEOUT_S, what="the cancel")
        store.gate.set()
        await core.all_completed()
        assert worker.state is worker_module.WorkerState.WORKING
    assert core.state().status is JobStatus.COMPLETED


async def test_a_halt_lets_nobody_into_the_engine_any_more() -> None:
    core = Core()
    core.engine.hold("one two")
    core.consumer.append(record())

    async def work() -> None:
        async with core.working() as worker:
            await core.inside("one two")
            worker.halt(Halt("enough"))
            assert core.permits.closed
            await core.ended()

    with pytest.raises(Halt, match="enough"):
        await work()


async def test_a_stop_without_redis_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "RELEASE_WITHIN_S", 0.05)
    core, diary = traced(grace_s=0.0)
    core.engine.hold("one two")
    core.consumer.append(record())
    diary.fail("release", *[Unavailable("down")] * 10_000)
    async with core.working():
        await core.inside("one two")
    assert core.state().claims, "what could not be released looks like a crash"


# --- back-offs ------------------------------------------------------------------------------------


async def test_an_outage_is_asked_after_every_few_seconds_however_long_it_lasts(
    sleeps: list[float],
) -> None:
    left = [Unavailable("down")] * 60

    async def call() -> str:
        if left:
            raise left.pop()
        return "there"

    assert await Outages().until_available("store", call) == "there"
    assert len(sleeps) >= 59
    assert max(sleeps) <= LONGEST_WAIT_S


def test_every_default_of_a_back_off_is_bounded() -> None:
    backoff = Backoff()
    for _ in range(60):
        backoff.failed()
    longest = [backoff.delay_s() for _ in range(60)]
    longest += [pause_s(fetching.BACKOFF, tries) for tries in range(1, 60)]
    assert max(longest) <= LONGEST_WAIT_S
    assert RetryPolicy().max_s <= LONGEST_WAIT_S


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-1, "1970-01-01T00:00:00.000Z"),
        (-(2**63), "1970-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "9999-12-31T23:59:59.999Z"),
        (2**63 - 1, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_any_timestamp_of_a_record_can_be_told(ms: int, text: str) -> None:
    assert rfc3339(ms) == text


@pytest.mark.parametrize("ms", [-(2**63), -1, 1_700_000_000_000_000, 2**63 - 1])
async def test_a_record_of_any_timestamp_is_claimed_and_done(
    ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Core()
    monkeypatch.setattr("time.time_ns", lambda: ms * 1_000_000)
    core.consumer.append(record())
    monkeypatch.undo()
    await core.run_all()
    assert core.state().status is JobStatus.COMPLETED
