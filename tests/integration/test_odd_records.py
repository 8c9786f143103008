"""Odd records on a real broker become jobs or dead letters and delay no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import Producer

from support.deadly import sitecustomize as deadly
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, read_all
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
MICROSECONDS_FOR_MILLISECONDS = 1_893_456_000_000_000
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}

pytestmark = pytest.mark.timeout(900)


def a_job(job_id: str, text: str = "Hello.") -> bytes:
    return json.dumps({"job_id": job_id, "text": text, "target_lang": "de"}).encode()


def produce(bootstrap: str, topic: str, *records: dict[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in records:
        producer.produce(topic, **each)
    assert producer.flush(30) == 0


def test_odd_timestamps_and_null_headers_stop_nothing(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(partitions=2, configs=ANY_TIME)
    kafka.create_topic(f"{name}-dead", 1)
    late: dict[str, Any] = {"partition": 0, "timestamp": MICROSECONDS_FOR_MILLISECONDS}
    odd: list[dict[str, Any]] = [
        {"value": a_job("late"), **late},
        {"value": b"no job", **late},
        {"value": b"no job", "partition": 0, "headers": [("odd", None), ("odd", b"1")]},
        {"value": None, "partition": 1, "headers": [("", None)]},
        {"value": a_job("bare"), "partition": 1, "headers": [("dragoman-replay", None)]},
    ]
    bystanders = [f"j{number}" for number in range(20)]
    rest = [{"value": a_job(each), "partition": n % 2} for n, each in enumerate(bystanders)]
    produce(kafka.bootstrap, name, *odd, *rest)
    at: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": redis_server.url, "topic": name}
    with ForkedWorker(tmp_path, **at) as worker, redis.Redis.from_url(redis_server.url) as client:
        worker.ready(60)
        for job_id in ("late", "bare", *bystanders):
            assert ended(client, job_id, 60)["status"] == "completed"
        wait_until(
            lambda: committed(kafka.bootstrap, f"{name}-group", name, 2) == (25, 25),
            timeout_s=30,
            what="all committed",
        )
        assert worker.running
        assert ended(client, "late")["queued_at"].startswith("9999-")
    letters = read_all(kafka.bootstrap, f"{name}-dead")
    assert [letter.code for letter in letters] == ["invalid_job"] * 3


def test_records_that_kill_the_replica_opening_them_become_dead_letters(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    bystanders = [{"value": a_job(f"j{number}"), "partition": number % 2} for number in range(30)]
    bad = [
        {"value": a_job("planned", deadly.KILLS_PLANNED), "partition": 0},
        {"value": a_job("read", deadly.KILLS_READ), "partition": 1},
    ]
    produce(kafka.bootstrap, name, *bystanders[:20], *bad, *bystanders[20:])
    worker = WorkerProcess(
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        topic=name,
        settings={"retry.poison_after": 3},
        env={"PYTHONPATH": str(Path(deadly.__file__).parent)},
    )
    with worker, redis.Redis.from_url(redis_server.url) as client:
        for number in range(30):
            assert ended(client, f"j{number}", 200)["status"] == "completed"
        planned = ended(client, "planned", 300)  # six starts, 25 s each under load
        assert planned["result"]["error"]["code"] == "poisoned"
        wait_until(
            lambda: committed(kafka.bootstrap, f"{name}-group", name, 2) == (32, 32),
            timeout_s=60,
            what="all committed",
        )
        assert worker.ready(60).metric("dragoman_replica_restarts_total") <= 7
        assert worker.running
    letters = read_all(kafka.bootstrap, f"{name}-dead")
    assert {(letter.code, letter.headers.get("x-job-id")) for letter in letters} == {
        ("poisoned", "planned"),
        ("poisoned", None),
    }
