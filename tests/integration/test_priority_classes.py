"""An urgent job overtakes a backlog of bulk jobs in Kafka, and bulk jobs continue meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import redis

from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, job, publish
from support.services.redis_server import RedisServer

LATENCY_S = 0.4
BACKLOG = 3_000


def test_an_urgent_job_waits_for_the_engine_and_not_for_the_backlog(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> None:
    bulk, urgent = topic(partitions=2), topic(partitions=1)
    kafka.create_topic(f"{bulk}-dead", 1)
    publish(kafka.bootstrap, bulk, [_job(f"bulk-{number}") for number in range(BACKLOG)])
    settings = {
        "kafka.topics": [f"{urgent}:8", f"{bulk}:1"],
        "engine.echo.latency_s": LATENCY_S,
        "limits.max_engine_items": 32,
        "limits.max_in_flight_jobs": 96,
    }
    server = redis.Redis.from_url(redis_server.url)
    worker = ForkedWorker(
        tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=bulk, settings=settings
    )
    with worker:
        worker.ready()
        wait_until(lambda: _done(worker) > 100, timeout_s=30, what="bulk jobs run")
        waits = []
        for number in range(5):
            before, began = _done(worker), time.monotonic()
            publish(kafka.bootstrap, urgent, [_job(f"urgent-{number}")])
            assert ended(server, f"urgent-{number}")["status"] == "completed"
            waits.append(time.monotonic() - began)
            wait_until(
                partial(_has_done, worker, before + 2), timeout_s=30, what="bulk jobs continue"
            )
        assert _done(worker) < BACKLOG / 2, "the backlog must outlast the urgent jobs"
        assert min(waits) < 3 * LATENCY_S, "a turn of the engine and its own"
        assert max(waits) < BACKLOG / 32 * LATENCY_S / 2, "far less than the backlog takes"
        assert job(server, f"bulk-{BACKLOG - 1}") == {}
        assert _of_class(worker, "lag_jobs", bulk) > BACKLOG / 2
        assert 0 < _of_class(worker, "jobs_in_flight", bulk) < 96
        # Conversely, a burst of urgent jobs leaves bulk jobs their share.
        publish(kafka.bootstrap, urgent, [_job(f"burst-{number}") for number in range(600)])
        wait_until(lambda: len(_ends(server, "burst", 600)) > 400, timeout_s=60, what="a burst")
        burst = sorted(_ends(server, "burst", 600))
        meanwhile = [end for end in _ends(server, "bulk", BACKLOG) if burst[200] < end < burst[400]]
        # A ninth, in turns of 32; more while the consumer has fetched a part of the burst alone.
        assert 10 <= len(meanwhile) < 200
    server.close()


def _job(job_id: str) -> dict[str, str]:
    return {"job_id": job_id, "text": "Hello.", "source_lang": "en", "target_lang": "de"}


def _done(worker: WorkerProcess) -> float:
    return worker.metric("dragoman_jobs_total")


def _has_done(worker: WorkerProcess, jobs: float) -> bool:
    return _done(worker) >= jobs


def _of_class(worker: WorkerProcess, name: str, topic: str) -> float:
    lines = worker.get("/metrics")[1].splitlines()
    found = (line for line in lines if line.startswith(f"dragoman_class_{name}{{"))
    return float(next(line for line in found if f'topic="{topic}"' in line).rsplit(" ", 1)[1])


def _ends(server: redis.Redis, kind: str, count: int) -> list[str]:
    """Return the times at which the jobs of a kind were completed, as the worker wrote them."""
    pipeline = server.pipeline(transaction=False)
    for number in range(count):
        pipeline.hmget(f"dragoman:job:{kind}-{number}", "status", "finished_at")
    answers: list[list[bytes | None]] = pipeline.execute()
    return [at.decode() for status, at in answers if status == b"completed" and at is not None]
