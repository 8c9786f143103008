"""Does `why` name the limit of a real worker that is held in it? The engine is played here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from support.foreign import publish
from support.kafka_broker import KafkaBroker
from support.processes import command
from support.redis_server import RedisServer
from support.waiting import NotInTime, wait_until
from support.worker_process import WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

MakeTopic = Callable[..., str]


def named(worker: WorkerProcess) -> dict[str, Any]:
    """What the command says, as a person would ask it."""
    argv = command("dragoman-worker", "why", "--json", "--set", f"http.port={worker.port}")
    asked = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert asked.returncode == 0, asked.stderr
    told: dict[str, Any] = json.loads(asked.stdout)
    return told


def is_named(worker: WorkerProcess, cause: str) -> dict[str, Any]:
    """Wait until the metric names it, which takes half a window, and ask the command once."""
    causes: list[str] = []

    def told() -> bool:
        lines = worker.get("/metrics")[1].splitlines()
        causes[:] = [
            line for line in lines if line.startswith(("dragoman_bottleneck{", "dragoman_load{"))
        ]
        return any(f'cause="{cause}"' in line for line in causes)

    try:
        wait_until(told, timeout_s=30, what=cause)
    except NotInTime:
        pytest.fail(f"{cause} is not named: {causes}")
    return named(worker)


def test_an_empty_queue_few_sequences_and_a_redis_that_stalls(
    kafka: KafkaBroker, own_redis: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    settings = {"engine.options.max_num_seqs": 8, "engine.echo.latency_s": 0.4}
    worker = WorkerProcess(
        tmp_path, kafka=kafka.bootstrap, redis=own_redis.url, topic=name, settings=settings
    )
    with worker, redis.Redis.from_url(own_redis.url) as client:
        worker.ready()
        assert is_named(worker, "queue_empty")["numbers"]["running"] == 0

        jobs = [{"job_id": f"w{n}", "text": "Hello.", "target_lang": "de"} for n in range(1_500)]
        publish(kafka.bootstrap, name, jobs)
        told = is_named(worker, "sequences")
        assert told["change"] == "Raise engine.options.max_num_seqs."
        assert told["numbers"]["running"] == pytest.approx(8, abs=0.5)
        assert worker.metric("dragoman_feed_wait_seconds_total") < 5

        client.client_pause(30_000, all=False)
        try:
            told = is_named(worker, "feed")
            assert told["feed"] == "store"
            assert told["numbers"]["stalled"] > 0
            assert worker.metric("dragoman_feed_wait_seconds_total") >= 4
        finally:
            client.client_unpause()
