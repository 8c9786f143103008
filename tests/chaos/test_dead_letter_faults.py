"""What if a dead letter cannot be published? The offset is held until it is acknowledged."""

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

from support.processes.crash_points import Point
from support.processes.replica_process import ReplicaProcess
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import DeadLetter, committed, ended, job, publish, read_all
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis, pytest.mark.chaos]

HELD_S = 3.0
"""So long a letter that cannot be written is seen to hold its offset."""


class Bench:
    """A topic of one partition on any broker, and its dead letters."""

    def __init__(
        self, kafka: KafkaBroker, server: RedisServer, folder: Path, letters: dict[str, str]
    ) -> None:
        self.broker = kafka
        self.url = server.url
        self.redis = redis.Redis.from_url(server.url)
        self.folder = folder
        self.topic = kafka.create_topic(f"letters-{time.monotonic_ns()}", 1)
        self.dead = kafka.create_topic(f"{self.topic}-dead", 1, letters)

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

    def letters(self) -> list[DeadLetter]:
        return read_all(self.broker.bootstrap, self.dead)

    def status(self, job_id: str) -> str | None:
        return job(self.redis, job_id).get("status")

    def holds(self, job_id: str, *, replica: ReplicaProcess) -> None:
        """For a while, nothing about this job ends, and the worker lives on."""
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

        def make(broker: KafkaBroker, **letters: str) -> Bench:
            configs = {name.replace("_", "."): value for name, value in letters.items()}
            made = Bench(broker, redis_server, tmp_path, configs)
            stack.callback(made.redis.close)
            return made

        yield make


def a_job(job_id: str, text: Any = "Hello.") -> dict[str, Any]:
    return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en"}


@pytest.fixture
def three_brokers(kafka_installed: Path) -> Iterator[KafkaBroker]:
    """A cluster: one broker alone needs no more replicas than itself, whatever is asked."""
    del kafka_installed
    with KafkaBroker(nodes=3) as cluster:
        yield cluster


def test_too_few_replicas_hold_the_offset_until_the_letter_is_acknowledged(
    bench: MakeBench, three_brokers: KafkaBroker
) -> None:
    made = bench(three_brokers, min_insync_replicas="3")
    made.publish(a_job("before"))
    with made.replica() as replica:
        assert ended(made.redis, "before", timeout_s=40)["status"] == "completed"
        three_brokers.kill(2)  # the jobs' topic asks for two: it works on
        made.publish(a_job("bad", "#!fatal\nx"), a_job("after"))
        assert ended(made.redis, "after", timeout_s=60)["status"] == "completed"
        wait_until(lambda: made.status("bad") == "running", timeout_s=20, what="taken")
        made.holds("bad", replica=replica)
        assert made.offsets()[0] <= 1, "nothing behind it is committed"
        assert made.letters() == []
        made.heal("min.insync.replicas", "2")
        assert ended(made.redis, "bad", timeout_s=60)["status"] == "failed"
        wait_until(made.all_committed, timeout_s=30, what="all is committed")
    assert {letter.headers["x-original-offset"] for letter in made.letters()} == {"1"}


def test_a_broker_that_dies_holds_the_job_and_its_return_ends_it(
    bench: MakeBench, own_kafka: KafkaBroker
) -> None:
    made = bench(own_kafka)
    made.publish(a_job("bad", ["#!sleep 1.5\nx", "#!fatal\nx"]))
    with made.replica() as replica:
        wait_until(lambda: made.status("bad") == "running", timeout_s=20, what="taken")
        own_kafka.kill()
        made.holds("bad", replica=replica)
        own_kafka.restart()
        fields = ended(made.redis, "bad", timeout_s=60)
        assert (fields["status"], fields["deliveries"]) == ("failed", "1")
        assert fields["result"]["translations"][0]["text"] == "[de] x"
        wait_until(made.all_committed, timeout_s=30, what="all is committed")
    assert {letter.headers["x-original-offset"] for letter in made.letters()} == {"0"}


def test_a_record_too_large_for_the_letters_topic_is_replaced_by_its_headers(
    bench: MakeBench, kafka: KafkaBroker
) -> None:
    # A limit below the producer's batches: the broker refuses the small letter with the large one.
    made = bench(kafka, max_message_bytes="3000")
    values = [a_job("large", "#!fatal\n" + "x" * 50_000), a_job("small", "#!fatal\nx")]
    made.publish(*values)
    with made.replica():
        for name in ("large", "small"):
            assert ended(made.redis, name)["status"] == "failed"
        wait_until(made.all_committed, timeout_s=10, what="all is committed")
    letters = {letter.headers["x-job-id"]: letter for letter in made.letters()}
    original = json.dumps(values[0]).encode()
    assert letters["large"].value is None
    assert letters["large"].headers["x-original-size"] == str(len(original))
    assert letters["large"].headers["x-original-sha256"] == hashlib.sha256(original).hexdigest()
    # The broker's refusal left a gap in the producer's sequence, and the next letter still came.
    assert letters["small"].value == json.dumps(values[1]).encode()


def test_a_letter_whose_acknowledgement_is_lost_is_written_again_and_tells_the_same_place(
    bench: MakeBench, kafka: KafkaBroker
) -> None:
    made = bench(kafka)
    made.publish(a_job("bad", "#!fatal\nx"))
    with made.replica(Point("reply lost", "dead letter", 2)):
        assert ended(made.redis, "bad")["status"] == "failed"
        wait_until(made.all_committed, timeout_s=10, what="all is committed")
    letters = made.letters()
    assert len(letters) == 3
    assert len({letter.headers["x-original-offset"] for letter in letters}) == 1
