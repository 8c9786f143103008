"""Others take over the jobs of a killed replica once its session has timed out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from confluent_kafka.admin import AdminClient

from dragoman_connections.settings import KafkaSettings
from support.processes.child_process import argv_of
from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import job, publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
SESSION_TIMEOUT_S = 6
"""The shortest that a broker accepts by default."""
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
    """Return its replica processes."""
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
