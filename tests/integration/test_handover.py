"""Other replicas take over the jobs of a killed one long before the session timeout."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from aiokafka import ConsumerRebalanceListener
from confluent_kafka.admin import AdminClient

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka import group_consumer
from dragoman_worker.kafka.leave_group import end_membership
from support.processes.child_process import argv_of
from support.processes.waiting import eventually, wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.mock_broker import Api, Error, MockBroker
from support.services.plain_clients import job, publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
SESSION_TIMEOUT_S = 600
"""Far longer than these tests: only an ended membership frees its partitions."""
READY_S = 120.0


@pytest.fixture
def new_worker(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> Iterator[Callable[..., WorkerProcess]]:
    name = topic(partitions=4)
    kafka.create_topic(f"{name}-dead", 1)

    with contextlib.ExitStack() as workers:

        def start(worker_id: str, **settings: Any) -> WorkerProcess:
            worker = WorkerProcess(
                tmp_path,
                kafka=kafka.bootstrap,
                redis=redis_server.url,
                topic=name,
                name=worker_id,
                settings={
                    "worker_id": worker_id,
                    "kafka.session_timeout_s": SESSION_TIMEOUT_S,
                    **settings,
                },
            )
            return workers.enter_context(worker)

        start.topic = name  # type: ignore[attr-defined]
        yield start


def replicas(worker: WorkerProcess) -> list[psutil.Process]:
    """Return its replica processes, without the standby process."""
    children = psutil.Process(worker.pid).children()
    return [child for child in children if "replica" in argv_of(child)]


def kill_one_with_jobs_in_flight(
    kafka: KafkaBroker,
    client: redis.Redis,
    workers: list[WorkerProcess],
    topic: str,
    worker_id: str,
    victim: psutil.Process,
) -> None:
    """Kill `victim` with jobs in flight and check that all jobs complete."""
    names = [f"j{number}" for number in range(80)]
    publish(
        kafka.bootstrap,
        topic,
        [
            {
                "job_id": name,
                "text": f"#!sleep 4\n{name}",
                "source_lang": "en",
                "target_lang": "de",
            }
            for name in names
        ],
    )
    wait_until(
        lambda: sum(each.metric("dragoman_jobs_in_flight") for each in workers) >= len(names),
        timeout_s=30,
        what="in flight",
    )
    victim.kill()
    wait_until(
        lambda: all(job(client, name).get("status") == "completed" for name in names),
        timeout_s=100,
        what=f"the jobs of {worker_id} being done by others",
    )
    assert max(int(job(client, name)["deliveries"]) for name in names) >= 2


def test_the_jobs_of_a_killed_replica_are_done_by_another_worker(
    kafka: KafkaBroker, redis_server: RedisServer, new_worker: Callable[..., WorkerProcess]
) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        first, second = (new_worker(name).ready(READY_S) for name in ("first", "second"))
        [victim] = replicas(first)
        topic: str = new_worker.topic  # type: ignore[attr-defined]
        kill_one_with_jobs_in_flight(kafka, client, [first, second], topic, "first", victim)


def test_the_jobs_of_a_killed_replica_are_done_by_its_sibling(
    kafka: KafkaBroker, redis_server: RedisServer, new_worker: Callable[..., WorkerProcess]
) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        pair = new_worker("pair", **{"engine.replicas": 2})
        pair.wait_for(
            lambda: pair.metric("dragoman_ready") == 2, timeout_s=READY_S, what="two ready"
        )
        victim = replicas(pair)[0]
        topic: str = new_worker.topic  # type: ignore[attr-defined]
        kill_one_with_jobs_in_flight(kafka, client, [pair], topic, "one of the pair", victim)


def members(kafka: KafkaBroker, topic: str) -> set[str]:
    """Return the member ids of the workers' group."""
    group = f"{topic}-group"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(timeout=30)
    return {member.member_id for member in described.members}


def test_a_worker_suspended_for_half_the_default_session_keeps_its_membership(
    kafka: KafkaBroker, redis_server: RedisServer, new_worker: Callable[..., WorkerProcess]
) -> None:
    del redis_server
    session_s = KafkaSettings().session_timeout_s
    worker = new_worker("still", **{"kafka.session_timeout_s": session_s}).ready(READY_S)
    topic: str = new_worker.topic  # type: ignore[attr-defined]
    before = members(kafka, topic)
    [replica] = replicas(worker)
    replica.suspend()
    suspended_until = time.monotonic() + session_s / 2
    wait_until(lambda: time.monotonic() > suspended_until, timeout_s=60, what="half a session")
    replica.resume()
    seen = worker.metric("dragoman_commits_total")
    publish(kafka.bootstrap, topic, [{"job_id": "after", "text": "Hello.", "target_lang": "de"}])
    worker.wait_for(
        lambda: worker.metric("dragoman_commits_total") > seen, timeout_s=60, what="a commit"
    )
    assert members(kafka, topic) == before
    assert len(before) == 1


async def test_ending_the_membership_of_an_unknown_member_is_no_failure(kafka: KafkaBroker) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap)
    assert await end_membership(settings, "a-group-nobody-has", "a-member-nobody-has", 30)


class _NoListener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def on_partitions_revoked(self, revoked: object) -> None: ...
    def on_partitions_assigned(self, assigned: object) -> None: ...


async def test_a_member_of_the_embedded_broker_s_group_is_removed_at_the_third_try() -> None:
    with MockBroker(1) as broker:
        broker.create_topic("t", 1)
        settings = KafkaSettings(bootstrap_servers=broker.bootstrap, topics=("t",), group_id="g")
        consumer = group_consumer.build_consumer(settings, client_id="c", listener=_NoListener())
        await consumer.start()
        try:
            member = group_consumer.member_id(consumer)
            broker.fail(Api.LEAVE_GROUP, Error.NOT_COORDINATOR, Error.DISCONNECT)
            assert await end_membership(settings, "g", member, 30)
            await eventually(
                lambda: group_consumer.member_id(consumer) != member, timeout_s=30, what="expelled"
            )
        finally:
            await group_consumer.leave_and_close(consumer, 5)


async def test_a_membership_that_cannot_be_ended_in_time_is_left_to_the_session_timeout() -> None:
    settings = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    assert not await end_membership(settings, "g", "m", within_s=0.5)
