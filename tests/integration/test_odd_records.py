"""Odd records on a real broker end as jobs or dead letters, and stop nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import Producer

from support.foreign import committed, ended, read_all
from support.kafka_broker import KafkaBroker
from support.redis_server import RedisServer
from support.waiting import wait_until
from support.worker_process import WorkerProcess

MakeTopic = Callable[..., str]
MICROSECONDS_FOR_MILLISECONDS = 1_893_456_000_000_000
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}

pytestmark = pytest.mark.timeout(300)


def a_job(job_id: str) -> bytes:
    return json.dumps({"job_id": job_id, "text": job_id, "target_lang": "de"}).encode()


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
    with WorkerProcess(tmp_path, **at) as worker, redis.Redis.from_url(redis_server.url) as client:
        worker.ready(60)
        for job_id in ("late", "bare", *bystanders):
            assert ended(client, job_id, 60)["status"] == "completed"
        wait_until(
            lambda: committed(kafka.bootstrap, f"{name}-group", name, 2) == (25, 25),
            timeout_s=30,
            what="all committed",
        )
        assert worker.metric("dragoman_replica_restarts_total") == 0
        assert ended(client, "late")["queued_at"].startswith("9999-")
    letters = read_all(kafka.bootstrap, f"{name}-dead")
    assert [letter.code for letter in letters] == ["invalid_job"] * 3
