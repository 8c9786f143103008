"""The consumer keeps its offsets on a real broker: dead tasks, lost offsets, outages, growth."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka import membership
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity
from support.processes.waiting import eventually, wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
IN_TIME_S = 30.0
SESSION_S = 6


class Reader:
    """A consumer whose deliveries are completed at once and recorded."""

    def __init__(self, bootstrap: str, topic: str, **settings: Any) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.values: list[bytes | None] = []
        self.metrics = Metrics(CollectorRegistry())
        self.source = KafkaConsumer(
            KafkaSettings(
                bootstrap_servers=bootstrap,
                topics=(topic,),
                group_id=f"{topic}-group",
                **{"session_timeout_s": SESSION_S, **settings},
            ),
            partition_span=5_000,
            client_id="reader",
            metrics=self.metrics,
        )

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Reader]:
        StickyPartitionAssignor.member_assignment = None  # of an earlier test
        await self.source.start(Deadline.after(IN_TIME_S))
        task = asyncio.create_task(self._read())
        try:
            yield self
            assert not task.done() or task.result() is None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.source.close()

    async def _read(self) -> None:
        while True:
            for delivery in await self.source.poll(Capacity(100)):
                self.values.append(delivery.value)
                self.source.complete(delivery)

    @property
    def consumer(self) -> Any:
        assert self.source._membership is not None
        return self.source._membership.consumer

    async def has(self, *values: bytes, timeout_s: float = IN_TIME_S) -> None:
        await eventually(
            lambda: set(values) <= set(self.values), timeout_s=timeout_s, what=f"{len(values)} read"
        )

    def count(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(f"dragoman_{name}_total") or 0.0

    async def all_committed(self, partitions: int) -> None:
        def at_the_end() -> bool:
            group = f"{self.topic}-group"
            offsets, end = committed(self.bootstrap, group, self.topic, partitions)
            return offsets == end

        await eventually(
            lambda: asyncio.to_thread(at_the_end), timeout_s=IN_TIME_S, what="committed == end"
        )


def values(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def keyed(start: int, end: int) -> list[dict[str, Any]]:
    """Return records whose keys spread them over all partitions."""
    return [{"job_id": f"k{number}"} for number in range(start, end)]


def delete_before(bootstrap: str, topic: str, **offsets: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    marks = [TopicPartition(topic, int(name[1:]), offset) for name, offset in offsets.items()]
    for future in admin.delete_records(marks).values():
        future.result(timeout=20)


def end_offsets(bootstrap: str, topic: str, partitions: int) -> list[int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    latest = OffsetSpec.latest()
    assert latest is not None
    asked: dict[TopicPartition, OffsetSpec] = {
        TopicPartition(topic, each): latest for each in range(partitions)
    }
    found = admin.list_offsets(asked)
    return [found[each].result(timeout=20).offset for each in sorted(found)]


# --- a consumer that dies silently ----------------------------------------------------------------


@pytest.mark.parametrize("task", ["_fetcher._fetch_task", "_coordinator._coordination_task"])
async def test_a_consumer_whose_task_died_is_replaced_and_nothing_is_missed(
    task: str, kafka: KafkaBroker, topic: MakeTopic
) -> None:
    """Checks the private attributes that the adapter reads: a new aiokafka breaks here."""
    name = topic(partitions=2)
    async with Reader(kafka.bootstrap, name).reading() as reader:
        publish(kafka.bootstrap, name, values(0, 20))
        await reader.has(*values(0, 20))
        owner, attribute = task.split(".")
        victim = getattr(getattr(reader.consumer, owner), attribute)
        assert membership.dead_tasks(reader.consumer) == []
        victim.cancel()
        await asyncio.wait({victim})
        publish(kafka.bootstrap, name, values(20, 40))
        await reader.has(*values(0, 40))
        await reader.all_committed(2)
        assert reader.count("consumer_rebuilds") == 1
        assert len(reader.values) == 40, "trackers stayed: nothing was delivered twice"


async def test_undelivered_records_are_counted_on_a_real_consumer(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    name = topic()
    reader = Reader(kafka.bootstrap, name)
    StickyPartitionAssignor.member_assignment = None
    await reader.source.start(Deadline.after(IN_TIME_S))
    try:
        publish(kafka.bootstrap, name, values(0, 5))
        await eventually(
            lambda: reader.source.undelivered() == 5, timeout_s=IN_TIME_S, what="a count of 5"
        )
        assert len(await reader.source.poll(Capacity(10))) == 5
        assert reader.source.undelivered() == 0
    finally:
        await reader.source.close()


async def test_a_loop_that_was_blocked_past_the_session_recovers(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    name = topic(partitions=2)
    async with Reader(kafka.bootstrap, name).reading() as reader:
        publish(kafka.bootstrap, name, values(0, 20))
        await reader.has(*values(0, 20))
        time.sleep(9)  # noqa: ASYNC251  the fault: 1.5 times the session
        publish(kafka.bootstrap, name, values(20, 40))
        await reader.has(*values(0, 40))
        await reader.all_committed(2)


# --- offsets and records that Kafka no longer has -------------------------------------------------


async def test_records_deleted_by_retention_are_counted_once_and_exactly(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    name = topic(partitions=2)
    async with Reader(kafka.bootstrap, name).reading() as reader:
        publish(kafka.bootstrap, name, keyed(0, 40))
        await reader.all_committed(2)
    before = end_offsets(kafka.bootstrap, name, 2)
    publish(kafka.bootstrap, name, keyed(40, 100))
    marks = [before[0] + 7, before[1] + 9]
    delete_before(kafka.bootstrap, name, p0=marks[0], p1=marks[1])
    for lost in (16, 0):  # a second start, with its assignment, counts nothing again
        async with Reader(kafka.bootstrap, name).reading() as reader:
            await reader.all_committed(2)
            assert reader.count("lost_to_retention") == lost
            assert len(reader.values) == (44 if lost else 0)


async def test_a_group_whose_offsets_were_lost_reads_everything_that_is_retained(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    name = topic(partitions=2)
    publish(kafka.bootstrap, name, values(0, 30))
    async with Reader(kafka.bootstrap, name).reading() as reader:
        await reader.has(*values(0, 30))
        await reader.all_committed(2)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.delete_consumer_groups([f"{name}-group"]).values():
        future.result(timeout=20)
    async with Reader(kafka.bootstrap, name).reading() as reader:
        await reader.has(*values(0, 30))
        await reader.all_committed(2)
        assert reader.count("lost_to_retention") == 0


async def test_offsets_beyond_the_end_of_the_log_hide_no_record(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    name = topic(partitions=2)
    publish(kafka.bootstrap, name, values(0, 30))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    far = [TopicPartition(name, 0, 5_000), TopicPartition(name, 1, 6_000)]
    group = ConsumerGroupTopicPartitions(f"{name}-group", far)
    for future in admin.alter_consumer_group_offsets([group]).values():
        future.result(timeout=20)
    async with Reader(kafka.bootstrap, name).reading() as reader:
        await reader.has(*values(0, 30))
        await reader.all_committed(2)
        assert reader.count("lost_to_retention") == 0


async def test_partitions_added_while_running_are_read_from_their_beginning(
    kafka: KafkaBroker, topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "METADATA_MAX_AGE_MS", 3_000)
    name = topic(partitions=2)
    async with Reader(kafka.bootstrap, name).reading() as reader:
        publish(kafka.bootstrap, name, values(0, 20))
        await reader.has(*values(0, 20))
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_partitions([NewPartitions(name, 8)])[name].result(timeout=20)

        def all_known() -> bool:
            return len(admin.list_topics(name, timeout=5).topics[name].partitions) == 8

        wait_until(all_known, timeout_s=20, what="8 partitions")
        publish(kafka.bootstrap, name, keyed(20, 220))  # before the reader knows these partitions
        await eventually(lambda: len(reader.values) >= 220, timeout_s=IN_TIME_S, what="220 read")
        await reader.all_committed(8)
        assert len(reader.values) == 220


def _events(worker: WorkerProcess) -> list[dict[str, Any]]:
    lines = worker.output.rpartition("\n")[0].splitlines()  # the last one may be unfinished
    return [json.loads(line) for line in lines if line.startswith("{")]


# --- no broker ------------------------------------------------------------------------------------


def test_a_worker_without_its_broker_lives_works_on_and_can_be_stopped(
    own_kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    name = own_kafka.create_topic("jobs", 2)
    own_kafka.create_topic("jobs-dead", 1)
    settings = {
        "engine.echo.latency_s": 4,
        "shutdown.grace_s": 2,
        "kafka.session_timeout_s": SESSION_S,
    }
    worker = WorkerProcess(
        tmp_path, kafka=own_kafka.bootstrap, redis=redis_server.url, topic=name, settings=settings
    )
    jobs = [{"job_id": f"a{number}", "text": "Hello.", "target_lang": "de"} for number in range(20)]
    with worker, redis.Redis.from_url(redis_server.url) as client:
        worker.ready(timeout_s=90)
        publish(own_kafka.bootstrap, name, jobs)
        wait_until(
            lambda: worker.metric("dragoman_items_in_flight") == 20, timeout_s=20, what="20 inside"
        )
        own_kafka.kill()
        lines, down_until = len(worker.output.splitlines()), time.monotonic() + 2 * SESSION_S
        for job in jobs:
            assert ended(client, job["job_id"])["status"] == "completed"
        while time.monotonic() < down_until:
            assert worker.get("/livez") == (200, "ok\n")
            time.sleep(0.5)
        assert worker.get("/readyz") == (503, "not yet: replica 0: Kafka\n")
        assert len(worker.output.splitlines()) - lines < 60, "the log is flooded"
        own_kafka.restart()
        wait_until(
            lambda: (found := committed(own_kafka.bootstrap, "jobs-group", name, 2))[0] == found[1],
            timeout_s=60,
            what="committed == end",
        )
        wait_until(lambda: worker.get("/readyz")[0] == 200, timeout_s=20, what="ready again")
        wait_until(
            lambda: '"event": "kafka_available"' in worker.output, timeout_s=20, what="in the log"
        )
        gone, back = (line for line in _events(worker) if line["event"].startswith("kafka_"))
        assert (gone["event"], back["event"]) == ("kafka_unavailable", "kafka_available")
        assert gone["servers"] == back["servers"] == own_kafka.bootstrap
        assert back["after_s"] > SESSION_S
        own_kafka.kill()
        wait_until(lambda: worker.get("/livez")[0] == 200, timeout_s=30, what="alive")
        stopped_at = time.monotonic()
        worker.terminate()
        assert worker.wait(timeout_s=30) == 0
        assert time.monotonic() - stopped_at < 60
        assert "Traceback" not in worker.log.read_text()
