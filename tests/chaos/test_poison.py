"""A job that kills its process is found and no other is condemned: real Kafka, Redis, processes.

Only crashes leave claims behind: drains, deploys, rebalances, duplicates and lost replies leave
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from support.processes.crash_points import Point
from support.processes.replica_process import ReplicaProcess
from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, job, publish, read_all
from support.services.redis_server import RedisServer

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.redis,
    pytest.mark.chaos,
]

MakeTopic = Callable[..., str]
TURNS = 5
"""One more than the deliveries that make a job poisonous."""


class Field:
    """A topic with two partitions, and views of its jobs."""

    def __init__(self, kafka: KafkaBroker, server: RedisServer, topic: str, folder: Path) -> None:
        self.kafka = kafka.bootstrap
        self.url = server.url
        self.redis = redis.Redis.from_url(server.url)
        self.topic = topic
        self.folder = folder

    def replica(self, name: str = "replica", point: Point | None = None, **settings: Any) -> Any:
        return ReplicaProcess(
            self.folder,
            kafka=self.kafka,
            redis=self.url,
            topic=self.topic,
            name=name,
            point=point,
            settings={key.replace("__", "."): value for key, value in settings.items()},
        )

    def publish(self, *values: dict[str, Any]) -> None:
        publish(self.kafka, self.topic, values)

    def claims(self, job_id: str) -> int:
        return sum(name.startswith("claim:") for name in job(self.redis, job_id))

    def running(self, job_id: str) -> bool:
        return job(self.redis, job_id).get("status") == "running"

    def begun(self, job_id: str) -> bool:
        return job(self.redis, job_id).get("status") in {"running", "completed"}

    def all_committed(self) -> bool:
        try:
            offsets, end = committed(self.kafka, f"{self.topic}-group", self.topic, 2)
        except KafkaException:  # the group has no coordinator yet
            return False
        return offsets == end

    def poisoned(self) -> list[str]:
        letters = read_all(self.kafka, f"{self.topic}-dead")
        assert {letter.code for letter in letters} <= {"poisoned"}
        # Another crash may come between a dead letter and its job's result: readers deduplicate.
        places = {(one.headers["x-job-id"], one.headers["x-original-offset"]) for one in letters}
        return sorted(job_id for job_id, _ in places)

    def members(self) -> int:
        """Return the number of members of a stable group, 0 during a rebalance."""
        group = f"{self.topic}-group"
        admin = AdminClient({"bootstrap.servers": self.kafka})
        found = admin.describe_consumer_groups([group])[group].result(10)
        return len(found.members) if found.state == ConsumerGroupState.STABLE else 0


@pytest.fixture
def field(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> Iterator[Field]:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    made = Field(kafka, redis_server, name, tmp_path)
    yield made
    made.redis.close()


def a_job(job_id: str, text: Any = "Hello.") -> dict[str, Any]:
    return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en"}


def test_a_job_that_hangs_every_engine_is_poisoned_and_its_neighbors_complete(
    field: Field, tmp_path: Path
) -> None:
    """With one slot all that is behind the job hangs with it."""
    neighbors = [f"n{number}" for number in range(40)]
    field.publish(a_job("hangs", "#!hang\nx"), *(a_job(name) for name in neighbors))
    worker = WorkerProcess(
        tmp_path,
        kafka=field.kafka,
        redis=field.url,
        topic=field.topic,
        settings={
            "engine.options.max_num_seqs": 1,
            "limits.max_engine_items": 8,
            "supervisor.stuck_after_s": 3,
        },
    )
    with worker:
        fields = ended(field.redis, "hangs", timeout_s=120)
        assert fields["status"] == "failed"
        assert fields["result"]["error"]["code"] == "poisoned"
        for name in neighbors:
            assert ended(field.redis, name, timeout_s=60)["status"] == "completed"
        assert field.poisoned() == ["hangs"]
        wait_until(field.all_committed, timeout_s=20, what="all is committed")


def test_a_job_that_kills_its_process_is_poisoned_and_300_bystanders_are_not(
    field: Field,
) -> None:
    bystanders = [f"b{number}" for number in range(300)]
    # First in its partition and, like all others, 50 ms in the engine: all in flight die with it.
    field.publish(a_job("killer", "#!exit\nx"), *(a_job(name, name) for name in bystanders))
    settings = {
        "engine.echo.latency_s": 0.05,
        "engine.options": {"max_num_seqs": 512},
        "kafka.session_timeout_s": 2,
    }
    worker = WorkerProcess(
        field.folder, kafka=field.kafka, redis=field.url, topic=field.topic, settings=settings
    )
    most_in_flight = 0

    def settled() -> bool:
        nonlocal most_in_flight
        if most_in_flight < 10:
            claimed = sum(field.claims(name) > 0 for name in bystanders[::10])
            most_in_flight = max(most_in_flight, claimed)
        return job(field.redis, "killer").get("status") == "failed" and field.all_committed()

    with worker:  # its replica starts five times: 4 s each, or 20 on a busy machine
        worker.wait_for(settled, timeout_s=250, what="settled", longest_pause_s=0.02)
    assert most_in_flight >= 10, "at least 10 of every tenth bystander were in flight at once"
    killer = job(field.redis, "killer")
    assert (killer["status"], killer["result"]["error"]["code"]) == ("failed", "poisoned")
    assert killer["deliveries"] == "4"
    for name in bystanders:
        fields = job(field.redis, name)
        assert fields["status"] == "completed", name
        assert int(fields["deliveries"]) <= 4, name
    assert field.poisoned() == ["killer"]


def test_two_poisonous_jobs_at_once_are_both_found_by_themselves(field: Field) -> None:
    items = ["one", "#!exit\ntwo", {"text": "three", "id": "c"}]
    field.publish(
        a_job("killer", "#!exit\nx"),
        a_job("list", items),
        *(a_job(f"b{number}", f"#!sleep 0.1\n{number}") for number in range(30)),
    )
    deaths = 0
    while not field.all_committed():
        with field.replica() as replica:
            wait_until(
                lambda: not replica.running or field.all_committed(),
                timeout_s=60,
                what="settled, or the process died",
            )
            deaths += not replica.running
        assert deaths <= 8, "four of each, at most"
    assert deaths >= 4
    assert field.poisoned() == ["killer", "list"]
    for name in ("killer", "list"):
        fields = job(field.redis, name)
        assert (fields["status"], fields["result"]["error"]["code"]) == ("failed", "poisoned")
        assert field.claims(name) == 0
    results = job(field.redis, "list")["result"]["translations"]
    assert [item["text"] for item in results] == [None, None, None]
    assert results[2]["id"] == "c"
    for number in range(30):
        assert job(field.redis, f"b{number}")["status"] == "completed"


def test_rolling_restarts_raise_no_suspicion(field: Field) -> None:
    field.publish(a_job("slow", "#!sleep 5\nx"))
    for turn in range(TURNS):
        with field.replica(shutdown__grace_s=0) as replica:
            wait_until(lambda: field.running("slow"), timeout_s=20, what="it runs")
            replica.terminate()
            assert replica.wait() == 0
        fields = job(field.redis, "slow")
        assert (fields["status"], fields["deliveries"]) == ("queued", str(turn + 1))
        assert field.claims("slow") == 0
    with field.replica():
        fields = ended(field.redis, "slow")
    assert (fields["status"], fields["deliveries"]) == ("completed", str(TURNS + 1))
    assert field.poisoned() == []


def test_a_drain_out_of_time_releases_the_rest_and_the_next_worker_completes_it(
    field: Field,
) -> None:
    slow, quick = ([f"{kind}{number}" for number in range(10)] for kind in ("slow", "quick"))
    field.publish(*(a_job(name, f"#!sleep 8\n{name}") for name in slow))
    field.publish(*(a_job(name, f"#!sleep 0.5\n{name}") for name in quick))
    with field.replica(shutdown__grace_s=3) as replica:
        wait_until(lambda: all(map(field.begun, slow + quick)), timeout_s=20, what="all have begun")
        replica.terminate()
        assert replica.wait() == 0
    finished = {name: job(field.redis, name) for name in quick}
    assert {(one["status"], one["deliveries"]) for one in finished.values()} == {("completed", "1")}
    assert {job(field.redis, name)["status"] for name in slow} == {"queued"}
    assert [name for name in slow if field.claims(name)] == []
    assert not field.all_committed()
    with field.replica():
        for name in slow:
            fields = ended(field.redis, name, timeout_s=40)
            assert (fields["status"], fields["deliveries"]) == ("completed", "2")
            assert fields["result"]["translations"][0]["text"] == f"[de] {name}"
        wait_until(field.all_committed, timeout_s=20, what="all is committed")
    assert {name: job(field.redis, name) for name in quick} == finished
    assert field.poisoned() == []


def test_joins_and_leaves_of_another_worker_raise_no_suspicion(field: Field) -> None:
    field.publish(*(a_job(f"slow{number}", f"#!sleep 15\n{number}") for number in range(8)))
    names = [f"slow{number}" for number in range(8)]

    def moved(name: str) -> bool:
        return int(job(field.redis, name)["deliveries"]) > 1

    with field.replica("stays"):
        wait_until(lambda: all(map(field.running, names)), timeout_s=20, what="all run")
        for turn in range(TURNS):
            with field.replica(f"guest{turn}", shutdown__grace_s=0) as guest:
                wait_until(lambda: field.members() == 2, timeout_s=20, what="two members")
                if turn == 0:  # otherwise nothing would be proven
                    wait_until(lambda: any(map(moved, names)), timeout_s=20, what="a job moved")
                wait_until(
                    lambda: all(field.claims(name) <= 1 for name in names),
                    timeout_s=3,
                    what="no claim but that of the working replica",
                )
                guest.terminate()
                assert guest.wait() == 0
            wait_until(lambda: field.members() == 1, timeout_s=20, what="one member")
        ends = [ended(field.redis, name, timeout_s=60) for name in names]
        assert {fields["status"] for fields in ends} == {"completed"}
        assert [name for name in names if field.claims(name)] == []
        wait_until(field.all_committed, timeout_s=20, what="all is committed")
    assert field.poisoned() == []


@pytest.mark.parametrize("seam", ["claim", "finish"])
def test_a_hundred_duplicates_and_lost_replies_raise_no_suspicion(field: Field, seam: str) -> None:
    field.publish(*[a_job("same", "#!sleep 0.3\nx")] * 100)
    with field.replica(point=Point("reply lost", seam, TURNS)) as replica:
        assert ended(field.redis, "same")["status"] == "completed"
        wait_until(field.all_committed, timeout_s=20, what="all is committed")
        replica.terminate()
        assert replica.wait() == 0
    fields = job(field.redis, "same")
    assert fields["deliveries"] == "1"
    assert field.claims("same") == 0
    assert field.poisoned() == []
