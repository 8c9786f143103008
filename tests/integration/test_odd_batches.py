"""Batches that no regular producer sends: each offset has an outcome and delays no other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from support.builders.raw_batches import batch, crowded_record, publish_raw, record
from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, read_all
from support.services.redis_server import RedisServer

MIB = 1 << 20
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
"""Retention uses the records' timestamps and would delete the odd ones."""
MOST_MEMORY = 1000 * MIB
"""Far above the cost of one batch of 64 MiB, far below the unpacked size of the bombs."""


def a_job(job_id: str) -> bytes:
    return json.dumps({"job_id": job_id, "text": job_id, "target_lang": "de"}).encode()


def a_record(job_id: str, delta: int = 0, **fields: Any) -> bytes:
    return record(a_job(job_id), delta=delta, key=job_id.encode(), **fields)


def odd_batches() -> list[tuple[bytes, int]]:
    """Return each batch with its number of dead letters."""
    bomb = record(bytes(400 * MIB), delta=0)
    codecs = ("gzip", "snappy", "xerial", "lz4", "zstd")
    names = [(b"\xff\xfe", b"1"), (b"traceparent", None)]
    return [
        (batch([bomb], codec="zstd"), 1),
        (batch([record(bytes(4 * MIB), delta=at) for at in range(20)], codec="zstd"), 20),
        (batch([record(bytes(60 * MIB), delta=0)], codec="zstd"), 1),
        (batch([crowded_record(b"", delta=0, many=30 * MIB)], codec="zstd"), 1),
        (batch([crowded_record(b"{", delta=0, many=400_000)]), 1),
        *((batch([a_record(f"by-{codec}")], codec=codec), 0) for codec in codecs),
        (batch([a_record("odd-name", headers=names), a_record("neighbour", 1)]), 1),
        (batch([a_record("odd-name-2", headers=names)], codec="lz4"), 1),
        (batch([a_record("ahead-1"), a_record("ahead-2", 100_000)]), 0),
        (batch([a_record("far-ahead", 2**31 - 1)]), 0),
        (batch([a_record("behind", -7), a_record("twice", -7)]), 0),
        (batch([a_record("ancient")], timestamp=-(2**62)), 0),
        (batch([a_record("future", timestamp=2**61)], timestamp=2**62), 0),
    ]


JOBS = [
    *(f"by-{codec}" for codec in ("gzip", "snappy", "xerial", "lz4", "zstd")),
    *("neighbour", "ahead-1", "ahead-2", "far-ahead", "behind", "twice", "ancient", "future"),
]


async def _publish_all(bootstrap: str, topic: str, bystanders: list[str]) -> int:
    for raw, _ in odd_batches():
        await publish_raw(bootstrap, topic, raw)
    for number in range(10):
        ten = bystanders[10 * number : 10 * number + 10]
        raw = batch([a_record(job_id, at) for at, job_id in enumerate(ten)])
        await publish_raw(bootstrap, topic, raw, partition=number % 2)
    return sum(letters for _, letters in odd_batches())


def test_odd_batches_have_outcomes_and_their_neighbours_complete(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic(partitions=2, configs=ANY_TIME)
    kafka.create_topic(f"{name}-dead")
    bystanders = [f"bystander-{number}" for number in range(100)]
    expected = asyncio.run(_publish_all(kafka.bootstrap, name, bystanders))
    at: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": redis_server.url, "topic": name}
    most = 0
    with WorkerProcess(tmp_path, **at) as worker, redis.Redis.from_url(redis_server.url) as client:

        def all_committed() -> bool:
            nonlocal most
            # A replica is a child of the command.
            sizes = [process.memory_info().rss for process in worker.session()]
            most = max(most, *sizes)
            done, end = committed(kafka.bootstrap, f"{name}-group", name, 2)
            return done == end

        worker.ready(60)
        wait_until(all_committed, timeout_s=150, what="all committed")
        for job_id in (*JOBS, *bystanders):
            assert ended(client, job_id, 5)["status"] == "completed", job_id
        assert worker.metric("dragoman_replica_restarts_total") == 0
        assert worker.metric("dragoman_consumer_rebuilds_total") == 0
        assert worker.metric("dragoman_resyncs_total") == 0
    assert most < MOST_MEMORY
    letters = read_all(kafka.bootstrap, f"{name}-dead")
    assert [letter.code for letter in letters] == ["invalid_job"] * expected
    places = {letter.headers["x-original-offset"] for letter in letters}
    assert len(places) == expected
    odd = next(letter for letter in letters if letter.key == b"odd-name")
    assert odd.value == a_job("odd-name")
    assert odd.headers["traceparent"] == ""
    assert "UTF-8" in odd.headers["x-error-message"]
