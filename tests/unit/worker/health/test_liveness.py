"""Tests that liveness checks find what is stuck, and are suspended during outages of a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import EngineDead, Unavailable
from dragoman_worker.flow.permits import Permits
from dragoman_worker.health.liveness import FAILS_S, REMEDY_S, UNHELD_S, liveness_checks
from dragoman_worker.health.watchdog import Watchdog
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.worker import Worker
from dragoman_worker.kafka import consumer, membership
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery
from dragoman_worker.process.exits import EXITS_AFTER_S
from support.builders.jobs_in_flight import entered
from support.fakes.core import Core
from support.fakes.fake_consumer import TOPIC, FakeConsumer

ATTEMPT_S = 50.0
SILENT_S = 40.0
LONG_S = int(ATTEMPT_S + EXITS_AFTER_S) + 5


class Bench:
    """The parts of a replica that is not running, and a clock that the test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(consumer, "COMMIT_EVERY_S", 3_600.0)
        self.consumer = FakeConsumer()
        monkeypatch.setattr(membership, "AIOKafkaConsumer", lambda **_: self.consumer)
        self.core = Core()
        self.worker: Worker = self.core.build()[2]
        self.permits: Permits = self.core.permits
        self.outages = Outages()
        self.waiting: list[asyncio.Task[None]] = []
        self.rebuilds: list[str] = []
        self.halts: list[str] = []
        self.deaths: list[EngineDead] = []
        self.core.engine.on_death(self.deaths.append)
        self.now = 0.0
        self.consumer_adapter = KafkaConsumer(
            KafkaSettings(topics=(TOPIC,)),
            partition_span=100,
            client_id="w1",
            metrics=Metrics(CollectorRegistry()),
        )
        monkeypatch.setattr(self.consumer_adapter, "rebuild", self.rebuilds.append)
        checks = liveness_checks(
            self.worker,
            self.consumer_adapter,
            self.permits,
            self.core.in_flight,
            self.outages,
            engine=self.core.engine,
            attempt_timeout_s=ATTEMPT_S,
            engine_silent_s=SILENT_S,
        )
        self.watchdog = Watchdog(
            checks, halt=lambda stuck: self.halts.append(str(stuck)), clock=lambda: self.now
        )

    async def start(self) -> None:
        await self.consumer_adapter.start(Deadline.after(5))
        await self.consumer.rebalance([0])

    def run(self, seconds: float, *, polling: bool = True) -> list[str]:
        """Advance the clock and return the names of the checks that fail at the end."""
        for _ in range(int(seconds)):
            self.now += 1.0
            if polling:
                self.worker.polled_at += 1.0
            self.watchdog.tick()
        return [name for name, passes in self.watchdog.checks().items() if not passes]

    async def fails(self, server: str) -> None:
        """Make the server unavailable for as long as the bench lives."""

        async def call() -> None:
            raise Unavailable("no answer")

        self.waiting.append(asyncio.create_task(self.outages.until_available(server, call)))
        await asyncio.sleep(0)
        assert self.outages.of(server)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Bench(monkeypatch)
    await made.start()
    yield made
    for waiting in made.waiting:
        waiting.cancel()
    await made.consumer_adapter.close()


async def test_an_idle_worker_passes_all_checks_forever(bench: Bench) -> None:
    assert bench.run(5 * LONG_S) == []
    assert (bench.rebuilds, bench.halts) == ([], [])


async def test_a_poll_loop_that_does_not_run_halts_the_worker(bench: Bench) -> None:
    assert bench.run(EXITS_AFTER_S - 2, polling=False) == ["poll loop"]
    assert bench.halts == []
    bench.run(5, polling=False)
    assert "poll loop" in bench.halts[0]


async def test_a_broken_consumer_that_is_not_replaced_fails_its_check(bench: Bench) -> None:
    bench.consumer.fetch_ended.set_result(None)
    assert bench.run(FAILS_S) == ["consumer"]


async def test_records_that_are_not_delivered_rebuild_the_consumer(bench: Bench) -> None:
    bench.consumer.fill(0, 5)
    assert bench.run(REMEDY_S + 2) == []
    assert len(bench.rebuilds) == 1
    assert bench.run(FAILS_S) == ["deliveries"]


async def test_a_worker_without_capacity_needs_no_deliveries(bench: Bench) -> None:
    bench.consumer.fill(0, 5)
    bench.worker._intake.enter(TOPIC, 10_000_000)
    assert bench.run(LONG_S) == []
    assert bench.rebuilds == []


async def finish_one(bench: Bench) -> None:
    bench.consumer.fill(0, 1)
    [delivery] = await bench.consumer_adapter.poll(Capacity(10))
    bench.consumer_adapter.complete(delivery)


async def test_finished_work_that_is_not_committed_fails_its_check(bench: Bench) -> None:
    await finish_one(bench)
    assert bench.run(FAILS_S + 2) == ["commits"]
    assert len(bench.rebuilds) == 1
    await bench.consumer_adapter.commit()
    assert bench.run(2) == []


async def test_commits_are_waited_for_while_no_broker_acknowledges_them(bench: Bench) -> None:
    await finish_one(bench)
    bench.consumer.commit_failures.append(TimeoutError())
    await bench.consumer_adapter.commit()
    assert bench.run(LONG_S) == []
    assert (bench.rebuilds, bench.halts) == ([], [])


async def test_an_item_that_outlives_its_attempt_timeout_fails_its_check(bench: Bench) -> None:
    await bench.permits.acquire("a1", 10)
    assert bench.run(ATTEMPT_S + FAILS_S - 2) == []
    assert bench.run(4) == ["permits"]
    bench.run(EXITS_AFTER_S)
    assert "permits" in bench.halts[0]


async def test_an_engine_that_works_on_nothing_needs_no_sign_of_life(bench: Bench) -> None:
    bench.core.engine.silent = True
    assert bench.run(5 * LONG_S) == []


async def test_an_engine_that_answers_others_lives_however_old_its_oldest_request(
    bench: Bench,
) -> None:
    bench.core.engine.inside.append("old")
    assert bench.run(5 * LONG_S) == []


async def test_an_engine_that_gives_no_sign_of_life_for_its_requests_is_declared_dead(
    bench: Bench,
) -> None:
    engine = bench.core.engine
    engine.inside.append("hangs")
    engine.silent = True
    bench.run(SILENT_S)
    assert bench.deaths == []
    assert bench.run(2) == ["engine"]
    assert len(bench.deaths) == 1
    assert bench.halts == [], "the engine's death halts the worker"


async def test_a_worker_that_was_stopped_itself_does_not_blame_its_engine(bench: Bench) -> None:
    engine = bench.core.engine
    engine.inside.append("works")
    bench.run(5)
    engine.silent = True
    bench.now += 10 * SILENT_S
    bench.run(2)
    engine.silent = False
    assert bench.run(SILENT_S) == []
    assert bench.deaths == []


async def test_successive_items_of_one_job_are_no_stuck_item(bench: Bench) -> None:
    for _ in range(6):
        permit = await bench.permits.acquire("a1", 10)
        assert bench.run(ATTEMPT_S) == []
        bench.permits.release(permit)


async def test_jobs_that_wait_for_redis_are_not_stuck(bench: Bench) -> None:
    await bench.fails("store")
    entered(bench.core.in_flight)
    await bench.permits.acquire("a1", 10)
    assert bench.run(2 * LONG_S) == []
    assert bench.halts == []


async def test_a_job_that_is_not_settled_while_all_servers_answer_fails_its_check(
    bench: Bench,
) -> None:
    entered(bench.core.in_flight)
    assert bench.run(FAILS_S + 2) == ["jobs being settled"]
    await bench.fails("dead letters")
    assert bench.run(2) == []
    await asyncio.sleep(0)


# --- deliveries without a task --------------------------------------------------------------------


async def delivered(bench: Bench, count: int = 1, *, capacity: int = 10) -> list[Delivery]:
    """Deliver records to a working worker, which has no task for them yet."""
    bench.worker._runs = True
    bench.consumer.fill(0, count)
    return list(await bench.consumer_adapter.poll(Capacity(capacity)))


def working_on(bench: Bench, *deliveries: Delivery) -> None:
    """Let the worker have tasks for these deliveries, and no others."""
    bench.worker._tasks.clear()
    for delivery in deliveries:
        task = asyncio.create_task(asyncio.Event().wait(), name=delivery.origin)
        bench.waiting.append(task)  # type: ignore[arg-type]
        bench.worker._tasks[task] = delivery  # type: ignore[index]


async def test_a_delivery_that_no_task_has_halts_the_worker_and_is_named(bench: Bench) -> None:
    first, lost, last = await delivered(bench, 3)
    working_on(bench, first, last)
    assert bench.run(UNHELD_S) == []
    assert bench.run(1) == ["deliveries without a task"]
    assert f"{TOPIC}/0/{lost.offset}" in bench.halts[0]


async def test_a_lost_delivery_is_found_in_a_paused_partition(bench: Bench) -> None:
    deliveries = await delivered(bench, 101, capacity=101)  # more than limits.partition_span
    await bench.consumer_adapter.poll(Capacity(1))
    assert bench.consumer.paused()
    working_on(bench, *deliveries[1:])
    bench.run(UNHELD_S + 1)
    assert f"{TOPIC}/0/{deliveries[0].offset}" in bench.halts[0]


async def test_finished_deliveries_and_those_that_tasks_have_are_not_lost(bench: Bench) -> None:
    first, second = await delivered(bench, 2)
    bench.consumer_adapter.complete(second)
    working_on(bench, first)
    bench.run(UNHELD_S + 1)
    assert bench.halts == []


async def test_a_delivery_that_gets_its_task_in_time_is_not_lost(bench: Bench) -> None:
    [delivery] = await delivered(bench)
    bench.run(UNHELD_S)
    working_on(bench, delivery)
    bench.run(UNHELD_S)
    assert bench.halts == []


async def test_fetched_records_that_wait_for_capacity_are_not_lost(bench: Bench) -> None:
    deliveries = await delivered(bench, 3, capacity=3)
    bench.consumer_adapter._fetching._ready.extend(deliveries)
    bench.run(UNHELD_S + 1)
    assert bench.halts == []


async def test_a_draining_worker_loses_nothing(bench: Bench) -> None:
    await delivered(bench)
    bench.worker.stop()
    bench.run(UNHELD_S + 1)
    assert bench.halts == []


async def test_a_delivery_of_a_revoked_partition_or_an_older_assignment_is_not_lost(
    bench: Bench,
) -> None:
    await delivered(bench)
    await bench.consumer.rebalance([1])
    bench.run(UNHELD_S + 1)
    await bench.consumer.rebalance([0])
    bench.run(UNHELD_S + 1)
    assert bench.halts == []
