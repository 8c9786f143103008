"""Faults of the dead-letter topic: the offset is held until the dead letter is acknowledged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from support.chaos.brokers import Brokers
from support.processes.crash_points import Point
from support.processes.replica_process import ReplicaProcess
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import DeadLetter, committed, ended, job, publish, read_all
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis, pytest.mark.chaos]

HELD_S = 3.0
"""How long a dead letter that cannot be written is observed to hold its offset."""


class Bench:
    """A topic with one partition on any broker, and its dead letters."""

    def __init__(
        self, kafka: KafkaBroker, server: RedisServer, folder: Path, configs: dict[str, str]
    ) -> None:
        self.broker = kafka
        self.url = server.url
        self.redis = redis.Redis.from_url(server.url)
        self.folder = folder
        self.topic = kafka.create_topic(f"faults-{time.monotonic_ns()}", 1)
        self.dead = kafka.create_topic(f"{self.topic}-dead", 1, configs)

    def replica(self, point: Point | None = None) -> ReplicaProcess:
        return ReplicaProcess(
            self.folder,
            kafka=self.broker.bootstrap,
            redis=self.url,
            topic=self.topic,
            point=point,
            settings={"kafka.session_timeout_s": 6},
        )

    def publish(self, *values: dict[str, Any]) -> None:
        publish(self.broker.bootstrap, self.topic, values)

    def offsets(self) -> tuple[int, int]:
        return committed(self.broker.bootstrap, f"{self.topic}-group", self.topic, 1)

    def dead_letters(self) -> list[DeadLetter]:
        return read_all(self.broker.bootstrap, self.dead)

    def status(self, job_id: str) -> str | None:
        return job(self.redis, job_id).get("status")

    def holds(self, job_id: str, *, replica: ReplicaProcess) -> None:
        """Check for a while that this job does not end and that the worker lives."""
        until = time.monotonic() + HELD_S

        def seen() -> bool:
            assert replica.running
            assert self.status(job_id) == "running", "failed without a dead letter"
            return time.monotonic() > until

        wait_until(seen, timeout_s=2 * HELD_S, what=f"{job_id} held")

    def heal(self, name: str, value: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        topic = ConfigResource(ResourceType.TOPIC, self.dead, incremental_configs=[entry])
        admin.incremental_alter_configs([topic])[topic].result(10)

    def all_committed(self) -> bool:
        done, end = self.offsets()
        return done == end


MakeBench = Callable[..., Bench]


@pytest.fixture
def bench(redis_server: RedisServer, tmp_path: Path) -> Iterator[MakeBench]:
    with contextlib.ExitStack() as stack:

        def make(broker: KafkaBroker, **options: str) -> Bench:
            configs = {name.replace("_", "."): value for name, value in options.items()}
            made = Bench(broker, redis_server, tmp_path, configs)
            stack.callback(made.redis.close)
            return made

        yield make


def a_job(job_id: str, text: Any = "Hello.") -> dict[str, Any]:
    return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en"}


@pytest.fixture
def three_brokers(brokers: Brokers) -> Iterator[Brokers]:
    """Return the cluster of the storms: a single broker never needs more replicas than itself."""
    yield brokers
    brokers.mend()


def test_too_few_replicas_hold_the_offset_until_the_dead_letter_is_acknowledged(
    bench: MakeBench, three_brokers: Brokers
) -> None:
    made = bench(three_brokers, min_insync_replicas="3")
    made.publish(a_job("before"))
    with made.replica() as replica:
        assert ended(made.redis, "before", timeout_s=40)["status"] == "completed"
        three_brokers.kill(2)  # the jobs' topic needs two in-sync replicas: it keeps working
        made.publish(a_job("bad", "#!fatal\nx"), a_job("after"))
        assert ended(made.redis, "after", timeout_s=60)["status"] == "completed"
        wait_until(lambda: made.status("bad") == "running", timeout_s=20, what="claimed")
        made.holds("bad", replica=replica)
        assert made.offsets()[0] <= 1, "nothing behind it is committed"
        assert made.dead_letters() == []
        made.heal("min.insync.replicas", "2")
        assert ended(made.redis, "bad", timeout_s=60)["status"] == "failed"
        wait_until(made.all_committed, timeout_s=30, what="all is committed")
    assert {one.headers["x-original-offset"] for one in made.dead_letters()} == {"1"}


def test_a_dead_broker_holds_the_job_until_it_is_back(
    bench: MakeBench, own_kafka: KafkaBroker
) -> None:
    made = bench(own_kafka)
    made.publish(a_job("bad", ["#!sleep 2.5\nx", "#!fatal\nx"]))
    with made.replica() as replica:
        wait_until(lambda: made.status("bad") == "running", timeout_s=20, what="claimed")
        own_kafka.kill()
        made.holds("bad", replica=replica)
        own_kafka.restart()
        fields = ended(made.redis, "bad", timeout_s=60)
        assert (fields["status"], fields["deliveries"]) == ("failed", "1")
        assert fields["result"]["translations"][0]["text"] == "[de] x"
        wait_until(made.all_committed, timeout_s=30, what="all is committed")
    assert {one.headers["x-original-offset"] for one in made.dead_letters()} == {"0"}


def test_a_record_too_large_for_the_dead_letter_topic_is_replaced_by_its_headers(
    bench: MakeBench, kafka: KafkaBroker
) -> None:
    # The limit is below the producer's batches: the broker refuses both dead letters at once.
    made = bench(kafka, max_message_bytes="3000")
    values = [a_job("large", "#!fatal\n" + "x" * 50_000), a_job("small", "#!fatal\nx")]
    made.publish(*values)
    with made.replica():
        for name in ("large", "small"):
            assert ended(made.redis, name)["status"] == "failed"
        wait_until(made.all_committed, timeout_s=30, what="all is committed")
    found = {one.headers["x-job-id"]: one for one in made.dead_letters()}
    original = json.dumps(values[0]).encode()
    assert found["large"].value is None
    assert found["large"].headers["x-original-size"] == str(len(original))
    assert found["large"].headers["x-original-sha256"] == hashlib.sha256(original).hexdigest()
    # The refusal left a gap in the producer's sequence; the next dead letter still arrived.
    assert found["small"].value == json.dumps(values[1]).encode()


def test_a_dead_letter_whose_acknowledgement_is_lost_is_repeated_with_the_same_offset(
    bench: MakeBench, kafka: KafkaBroker
) -> None:
    made = bench(kafka)
    made.publish(a_job("bad", "#!fatal\nx"))
    with made.replica(Point("reply lost", "dead letter", 2)):
        assert ended(made.redis, "bad")["status"] == "failed"
        wait_until(made.all_committed, timeout_s=30, what="all is committed")
    found = made.dead_letters()
    assert len(found) == 3
    assert len({one.headers["x-original-offset"] for one in found}) == 1
