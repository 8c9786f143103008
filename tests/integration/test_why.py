"""`why` names the current limit of a real worker on the echo engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from support.processes.waiting import wait_until
from support.processes.why import is_named, named
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

MakeTopic = Callable[..., str]


def test_an_empty_queue_few_sequences_and_a_redis_that_stalls(
    kafka: KafkaBroker, own_redis: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    settings = {"engine.options.max_num_seqs": 8, "engine.echo.latency_s": 0.4}
    worker = ForkedWorker(
        tmp_path, kafka=kafka.bootstrap, redis=own_redis.url, topic=name, settings=settings
    )
    with worker, redis.Redis.from_url(own_redis.url) as client:
        worker.ready()
        assert is_named(worker, "queue_empty")["numbers"]["running"] == 0

        jobs = [{"job_id": f"w{n}", "text": "Hello.", "target_lang": "de"} for n in range(1_500)]
        publish(kafka.bootstrap, name, jobs)
        answer = is_named(worker, "sequences")
        assert answer["change"] == "Raise engine.options.max_num_seqs."
        assert answer["numbers"]["running"] == pytest.approx(8, abs=0.5)

        waited = "dragoman_feed_wait_seconds_total"
        before = worker.metric(waited)
        client.client_pause(300_000, all=False)
        try:
            is_named(worker, "feed")
            # A call counts as stalled after seconds; until then the queue looks slow.
            wait_until(lambda: named(worker)["feed"] == "store", timeout_s=60, what="store")
            assert named(worker)["numbers"]["stalled"] > 0
            wait_until(lambda: worker.metric(waited) >= before + 4, timeout_s=60, what=waited)
        finally:
            client.client_unpause()
