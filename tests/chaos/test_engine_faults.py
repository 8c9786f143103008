"""Jobs whose generation fails, and the jobs behind them, on real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_connections.settings import load_settings
from dragoman_producer import DragomanSettings, TranslationClient
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker
from support.services.document_bits import progress
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, job, publish, read_all
from support.services.redis_server import RedisServer

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.redis,
    pytest.mark.chaos,
]

MakeTopic = Callable[..., str]
MakeBench = Callable[..., "Bench"]


class Bench:
    """A worker on a topic with one partition."""

    def __init__(
        self, kafka: KafkaBroker, server: RedisServer, topic: str, folder: Path, **settings: Any
    ) -> None:
        self.kafka = kafka.bootstrap
        self.url = server.url
        self.server = server
        self.redis = redis.Redis.from_url(server.url)
        self.topic = topic
        self.worker = ForkedWorker(
            folder,
            kafka=self.kafka,
            redis=self.url,
            topic=topic,
            settings={key.replace("__", "."): value for key, value in settings.items()},
        )

    def publish(self, *values: dict[str, Any]) -> None:
        publish(self.kafka, self.topic, values)

    def ended(self, job_id: str, timeout_s: float = 20.0) -> dict[str, Any]:
        return ended(self.redis, job_id, timeout_s=timeout_s)

    def offsets(self) -> tuple[int, int]:
        return committed(self.kafka, f"{self.topic}-group", self.topic, 1)

    def all_committed(self) -> bool:
        done, end = self.offsets()
        return done == end

    def runs(self, job_id: str) -> None:
        def running() -> bool:
            return job(self.redis, job_id).get("status") == "running"

        wait_until(running, timeout_s=20, what=f"{job_id} runs")

    def engine_is_idle(self) -> bool:
        return self.worker.metric("dragoman_items_in_flight") == 0

    def client(self) -> TranslationClient:
        asked = {
            "kafka.bootstrap_servers": self.kafka,
            "kafka.topics": self.topic,
            "redis.url": self.url,
        }
        return TranslationClient(settings=load_settings(DragomanSettings, None, asked))


@pytest.fixture
def bench(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> Iterator[MakeBench]:
    """Return a function that starts a bench with further settings: `bench(retry__attempts=2)`."""
    with contextlib.ExitStack() as stack:

        def make(server: RedisServer = redis_server, **settings: Any) -> Bench:
            name = topic(partitions=1)
            kafka.create_topic(f"{name}-dead", 1)
            made = Bench(kafka, server, name, tmp_path, **settings)
            stack.callback(made.redis.close)
            stack.enter_context(made.worker).ready(timeout_s=90)
            return made

        yield make


def a_job(job_id: str, text: Any = "Hello.", **more: Any) -> dict[str, Any]:
    return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en", **more}


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


ONE_SLOT = {"max_num_seqs": 1}
CANCELS = 4


def test_two_transient_errors_cost_two_back_offs_with_jitter(bench: MakeBench) -> None:
    made = bench(retry__initial_s=0.4, retry__max_s=0.6)
    names = [f"t{number}" for number in range(40)]
    made.publish(*(a_job(name, "#!transient 2\nx") for name in names), a_job("bad", "#!fatal\nx"))
    results = [made.ended(name)["result"] for name in names]
    assert {(one["status"], one["attempts"]) for one in results} == {("completed", 3)}
    assert made.ended("bad")["result"]["attempts"] == 1
    assert made.worker.metric("dragoman_retries_total") == 2 * len(names)
    waited = [one["timing"]["engine_ms"] for one in results]
    # Jitter shortens 0.4 s and then 0.6 s by up to half, a quarter on average. Upper bounds are
    # asserted with a clock of their own in test_retry.py: here the machine adds its own waits.
    assert min(waited) >= 490
    assert max(waited) - min(waited) >= 200


def test_a_document_of_512_bad_items_fails_and_the_worker_goes_on(bench: MakeBench) -> None:
    made = bench()
    made.publish(a_job("bad", ["#!empty\nx"] * 512), a_job("next"))
    fields = made.ended("bad")
    assert (fields["status"], fields["deliveries"]) == ("failed", "1")
    assert made.ended("next")["status"] == "completed"
    assert made.worker.running


def test_an_outage_in_the_middle_of_a_job_consumes_no_attempt(
    bench: MakeBench, own_redis: RedisServer
) -> None:
    made = bench(server=own_redis)
    names = [f"o{number}" for number in range(20)]
    made.publish(*(a_job(name, "#!sleep 4\nx") for name in names))
    made.runs(names[-1])
    os.kill(own_redis.pid, signal.SIGSTOP)
    stopped_at = time.monotonic()
    try:
        made.publish(*(a_job(f"{name}.later") for name in names))
        # Longer than the store's own time-out: calls fail and are repeated.
        wait_until(lambda: time.monotonic() - stopped_at > 6, timeout_s=30, what="the outage")
        assert made.worker.running
    finally:
        os.kill(own_redis.pid, signal.SIGCONT)
    for name in (*names, *(f"{name}.later" for name in names)):
        fields = made.ended(name, timeout_s=40)
        assert (fields["status"], fields["deliveries"]) == ("completed", "1")
        assert fields["result"]["attempts"] == 1
    assert made.worker.metric("dragoman_retries_total") == 0
    wait_until(made.all_committed, timeout_s=20, what="all is committed")
    assert read_all(made.kafka, f"{made.topic}-dead") == []


def test_a_hanging_generation_is_aborted_repeated_and_its_slot_reused(bench: MakeBench) -> None:
    made = bench(
        retry__attempt_timeout_s=0.5,
        retry__attempts=2,
        engine__options=ONE_SLOT,
        limits__max_engine_items=1,  # waiting inside the engine would count towards its time-out
    )
    made.publish(a_job("hangs", ["#!sleep 600\nx", "fine"]), a_job("next"))
    fields = made.ended("hangs")
    bad, good = fields["result"]["translations"]
    assert (bad["error"]["code"], bad["attempts"]) == ("engine_failed", 2)
    assert good["text"] == "[de] fine"
    assert made.ended("next")["status"] == "completed"
    wait_until(made.engine_is_idle, timeout_s=20, what="an idle engine")
    assert made.worker.metric("dragoman_retries_total") == 1
    (dead_letter,) = read_all(made.kafka, f"{made.topic}-dead")
    assert (dead_letter.code, dead_letter.headers["x-attempts"]) == ("engine_failed", "2")


async def test_a_cancel_aborts_a_running_job_within_a_second_and_frees_its_slot(
    bench: MakeBench,
) -> None:
    made = bench(engine__options=ONE_SLOT)
    place = {"document_id": "doc", "total": 6}
    names = [f"runs{index}" for index in range(CANCELS)]
    made.publish(
        *(
            a_job(name, "#!hang\nx", document={**place, "index": index})
            for index, name in enumerate(names)
        ),
        a_job("next", document={**place, "index": 4}),
    )
    took_s = []
    async with made.client() as client:
        for name in names:  # each waits for the slot of the one before
            made.runs(name)
            asked_at = time.monotonic()
            assert await client.job(name).cancel() == "running"
            fields = made.ended(name)
            took_s.append(time.monotonic() - asked_at)
            assert fields["status"] == "cancelled"
            assert fields["result"]["error"]["code"] == "cancelled"
            assert "cancel_requested_at" not in fields
    assert min(took_s) < 1, "the quickest one: a busy machine may delay the others"
    assert made.ended("next")["status"] == "completed"
    wait_until(made.engine_is_idle, timeout_s=20, what="an idle engine")
    ended, completed = progress(made.redis, "doc")
    assert (ended, len(completed)) == (set(range(5)), 1)
    assert made.worker.metric("dragoman_jobs_total") == CANCELS + 1
    wait_until(made.all_committed, timeout_s=20, what="all is committed")
    assert read_all(made.kafka, f"{made.topic}-dead") == []


async def test_cancelling_a_document_cancels_its_running_and_its_later_jobs(
    bench: MakeBench,
) -> None:
    made = bench(engine__options={"max_num_seqs": 4})
    runs = [f"doc.{number}" for number in range(4)]
    later = [f"doc.{number}" for number in range(4, 10)]

    def part(name: str, text: str) -> dict[str, Any]:
        index = int(name.partition(".")[2])
        return a_job(name, text, document={"document_id": "doc", "index": index, "total": 10})

    made.publish(*(part(name, f"#!hang\n{name}") for name in runs), a_job("other", "#!sleep 2\nx"))
    made.runs(runs[-1])
    async with made.client() as client:
        await client.cancel(document_id="doc")
        states = [made.ended(name)["status"] for name in runs]
    made.publish(*(part(name, name) for name in later))
    states += [made.ended(name)["status"] for name in later]
    assert set(states) == {"cancelled"}
    done = (set(range(10)), set[int]())
    # A job is marked in its document behind its result.
    wait_until(lambda: progress(made.redis, "doc") == done, timeout_s=20, what="a whole document")
    assert made.ended("other")["status"] == "completed"


def test_a_deadline_expires_a_job_before_and_during_its_run_and_keeps_finished_items(
    bench: MakeBench,
) -> None:
    made = bench(engine__options={"max_num_seqs": 2})
    made.publish(a_job("during", ["done", "#!hang\nx"], deadline=soon(8)))
    made.runs("during")
    made.publish(a_job("past", "x", deadline=soon(-1)))
    for name in ("during", "past"):
        fields = made.ended(name)
        assert fields["status"] == "expired"
        assert fields["result"]["error"]["code"] == "deadline_exceeded"
    texts = [item["text"] for item in job(made.redis, "during")["result"]["translations"]]
    assert texts == ["[de] done", None]
    # The hanging item has left the engine: both slots serve further jobs.
    made.publish(*(a_job(f"next{number}") for number in range(4)))
    for number in range(4):
        assert made.ended(f"next{number}")["status"] == "completed"
    wait_until(made.engine_is_idle, timeout_s=20, what="an idle engine")


def test_every_result_has_the_ttl_that_its_job_asked_for(bench: MakeBench) -> None:
    made = bench()
    lives = {"completed": 600, "failed": 1_200, "expired": 1_800, "usual": None}
    texts = {"failed": {"text": "#!fatal\nx"}, "expired": {"deadline": soon(-5)}}
    for name, ttl_s in lives.items():
        asked = {} if ttl_s is None else {"ttl_s": ttl_s}
        made.publish(a_job(name) | texts.get(name, {}) | asked)
    for name, ttl_s in lives.items():
        fields = made.ended(name)
        finished = datetime.fromisoformat(fields["finished_at"]).timestamp() * 1000
        expires: Any = made.redis.pexpiretime(f"dragoman:job:{name}")
        # `finished_at` is the worker's time; Redis counts the TTL from its later write.
        assert 0 <= expires - finished - (ttl_s or 86_400) * 1000 < 60_000, name


async def test_one_hanging_job_holds_the_commit_and_no_other_result(bench: MakeBench) -> None:
    made = bench(limits__partition_span=2_000)
    made.publish(a_job("head", "#!hang\nx"))
    made.publish(*(a_job(f"n{number}") for number in range(3_000)))

    def readable() -> int:
        with made.redis.pipeline(transaction=False) as pipeline:
            for number in range(3_000):
                pipeline.hget(f"dragoman:job:n{number}", "status")
            return sum(status == b"completed" for status in pipeline.execute())

    wait_until(lambda: readable() >= 1_999, timeout_s=60, what="all within the span completed")
    assert job(made.redis, "head")["status"] == "running"
    assert made.offsets()[0] == 0
    # The span is checked between two polls, and one poll returns up to 500 records.
    assert readable() <= 2_000 + 500
    async with made.client() as client:  # ends it without waiting for a deadline
        assert await client.job("head").cancel() == "running"
    assert made.ended("head")["status"] == "cancelled"
    wait_until(made.all_committed, timeout_s=20, what="the commit jumps to the end")
    assert readable() == 3_000
    assert json.loads(made.redis.hget("dragoman:job:n2999", "result") or b"")["deliveries"] == 1
