"""Several replicas of one worker, their crashes and their drains keep every job."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, job, publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
READY_S = 120.0  # two starts, one after the other; 25 s each have been seen on a busy machine


class Pair:
    """A worker with two replicas on a topic of four partitions."""

    def __init__(self, kafka: KafkaBroker, server: RedisServer, topic: str, folder: Path) -> None:
        self.kafka, self.topic = kafka.bootstrap, topic
        self.worker = WorkerProcess(
            folder,
            kafka=kafka.bootstrap,
            redis=server.url,
            topic=topic,
            settings={"engine.replicas": 2, "worker_id": "pair"},
        )

    def both_are_ready(self) -> None:
        self.worker.wait_for(
            lambda: self.worker.metric("dragoman_ready") == 2, timeout_s=READY_S, what="two ready"
        )

    def publish(self, texts: dict[str, str]) -> None:
        jobs = [{"job_id": name, "text": text, "target_lang": "de"} for name, text in texts.items()]
        publish(self.kafka, self.topic, jobs)

    def all_committed(self) -> bool:
        offsets, end = committed(self.kafka, f"{self.topic}-group", self.topic, 4)
        return bool(offsets == end)


@pytest.fixture
def pair(kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path) -> Pair:
    name = topic(partitions=4)
    kafka.create_topic(f"{name}-dead", 1)
    return Pair(kafka, redis_server, name, tmp_path)


def test_two_replicas_share_a_topic_and_one_signal_drains_both(
    pair: Pair, redis_server: RedisServer
) -> None:
    names = [f"j{number}" for number in range(60)]
    with pair.worker as worker, redis.Redis.from_url(redis_server.url) as client:
        pair.both_are_ready()
        assert len(worker.replicas()) == 2
        pair.publish({name: f"#!sleep 3\n{name}" for name in names})
        wait_until(
            lambda: worker.metric("dragoman_items_in_flight") >= len(names),
            timeout_s=20,
            what="all in the engine",
        )
        os.killpg(worker.pid, signal.SIGINT)  # Ctrl-C goes to the whole group
        assert worker.wait(timeout_s=40) == 0
        found = {name: job(client, name) for name in names}
        signed = {ended(client, name)["result"]["worker_id"] for name in names}
    assert {fields["status"] for fields in found.values()} == {"completed"}
    assert {fields["deliveries"] for fields in found.values()} == {"1"}, "no job ran twice"
    assert signed == {"pair-0", "pair-1"}
    assert pair.all_committed()


def test_a_job_that_kills_its_replica_is_poisoned_and_its_bystanders_complete(
    pair: Pair, redis_server: RedisServer
) -> None:
    texts = {f"j{number}": f"#!sleep 0.5\nj{number}" for number in range(40)}
    with pair.worker as worker, redis.Redis.from_url(redis_server.url) as client:
        pair.both_are_ready()
        pair.publish(texts | {"bad": "#!exit"})
        bad: dict[str, Any] = ended(client, "bad", 3 * READY_S)  # it kills three starts
        assert bad["result"]["error"]["code"] == "poisoned"
        for name in texts:
            assert ended(client, name, 60)["status"] == "completed"
        assert worker.running
        assert worker.metric("dragoman_replica_restarts_total") >= 3
        worker.wait_for(
            lambda: worker.metric("dragoman_replica_up") == 2, timeout_s=READY_S, what="both up"
        )
