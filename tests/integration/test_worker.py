"""A worker keeps the contract, seen from outside: real Kafka, real Redis, echo engine.

Tests of signals and deaths run the command with its supervisor, the others a forked replica.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from support.processes.child_process import argv_of
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.document_bits import progress
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import (
    committed,
    ended,
    job,
    publish,
    publish_with_headers,
    read_all,
)
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]


class Bench:
    """One worker on its own topic, and what a program without our packages sees."""

    def __init__(
        self,
        kafka: KafkaBroker,
        server: RedisServer,
        topic: str,
        folder: Path,
        kind: type[WorkerProcess] = ForkedWorker,
    ) -> None:
        self._kind = kind
        self.kafka = kafka.bootstrap
        self.url = server.url
        self.redis = redis.Redis.from_url(server.url)
        self.topic = topic
        self.folder = folder
        self.worker = self.new_worker()

    def new_worker(self, name: str = "worker", **settings: Any) -> WorkerProcess:
        return self._kind(
            self.folder,
            kafka=self.kafka,
            redis=self.url,
            topic=self.topic,
            name=name,
            settings={key.replace("__", "."): value for key, value in settings.items()},
        )

    def publish(self, *values: bytes | dict[str, Any] | None) -> None:
        publish(self.kafka, self.topic, values)

    def ended(self, job_id: str) -> dict[str, Any]:
        return ended(self.redis, job_id)

    def dead_letters(self, count: int) -> list[Any]:
        def all_there() -> bool:
            return len(read_all(self.kafka, self.worker.dead_letter_topic)) >= count

        wait_until(all_there, timeout_s=20, what=f"{count} dead letters")
        return read_all(self.kafka, self.worker.dead_letter_topic)

    def all_committed(self, partitions: int = 2) -> bool:
        group = f"{self.topic}-group"
        offsets, end = committed(self.kafka, group, self.topic, partitions)
        return offsets == end


@pytest.fixture
def bench(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> Iterator[Bench]:
    with started(kafka, redis_server, topic, tmp_path, ForkedWorker) as made:
        yield made


@pytest.fixture
def supervised(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> Iterator[Bench]:
    """Start a bench whose worker is the whole command."""
    with started(kafka, redis_server, topic, tmp_path, WorkerProcess) as made:
        yield made


@contextmanager
def started(
    kafka: KafkaBroker,
    server: RedisServer,
    topic: MakeTopic,
    folder: Path,
    kind: type[WorkerProcess],
) -> Iterator[Bench]:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    made = Bench(kafka, server, name, folder, kind)
    with made.worker:
        made.worker.ready()
        yield made
    made.redis.close()


def a_job(job_id: str, text: Any = "Hello.", **more: Any) -> dict[str, Any]:
    return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en", **more}


def test_a_record_of_a_foreign_client_is_translated_and_read_by_redis_cli(
    supervised: Bench,
) -> None:
    supervised.publish(b'{"job_id": "a1", "text": "Hello.", "target_lang": "zh_CN"}')
    supervised.ended("a1")
    answer = subprocess.run(
        [
            "redis-cli",
            "-u",
            supervised.url,
            "HMGET",
            "dragoman:job:a1",
            "status",
            "result",
            "replays",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert answer[0] == "completed"
    result = json.loads(answer[1])
    assert [item["text"] for item in result["translations"]] == ["[zh-CN] Hello."]
    assert result["model"] == "echo"
    assert result["profile"] is None


def test_order_ids_and_untranslatable_items_are_kept(bench: Bench) -> None:
    items = ["One", {"text": "Two", "id": "t"}, "", "   ", "12 34", "🙂🙂", " padded \n"]
    bench.publish(a_job("a", items, metadata={"k": "v"}))
    result = bench.ended("a")["result"]
    texts = [item["text"] for item in result["translations"]]
    assert texts == ["[de] One", "[de] Two", "", "   ", "12 34", "🙂🙂", " [de] padded \n"]
    assert result["translations"][1]["id"] == "t"
    assert "id" not in result["translations"][0]
    assert result["metadata"] == {"k": "v"}
    assert [item["attempts"] for item in result["translations"]] == [1, 1, 0, 0, 0, 0, 1]


def test_source_languages_are_detected_in_a_process_that_ends_with_the_worker(
    bench: Bench,
) -> None:
    items = ["Datei öffnen", "Speichern unter", "Einstellungen", "Abbrechen", "Drucken"]
    bench.publish({"job_id": "a", "text": items, "target_lang": "en"})
    result = bench.ended("a")["result"]
    assert {item["detected_source_lang"] for item in result["translations"]} == {"de"}
    [judge] = [
        process
        for process in psutil.Process(bench.worker.pid).children()
        if any("judge_child" in argument for argument in argv_of(process))
    ]
    bench.worker.terminate()
    assert bench.worker.wait(timeout_s=30) == 0
    assert not judge.is_running()


UNREADABLE = {
    "not UTF-8": b'{"job_id": "\xff"}',
    "not JSON": b"job",
    "a list": b'[{"job_id": "x"}]',
    "a tombstone": None,
    "empty": b"",
    "deep": b"[" * 900_000,
    "NaN": b'{"job_id": "x", "text": "a", "target_lang": "de", "ttl_s": NaN}',
    "repeated names": b'{"job_id": "x", "job_id": "y", "text": "a", "target_lang": "de"}',
    "no id": b'{"text": "a", "target_lang": "de"}',
    "a bad id": b'{"job_id": "a b", "text": "a", "target_lang": "de"}',
}


def test_records_without_a_readable_id_become_dead_letters_and_affect_no_other(
    bench: Bench,
) -> None:
    bench.publish(*UNREADABLE.values(), a_job("after"))
    assert bench.ended("after")["status"] == "completed"
    letters = bench.dead_letters(len(UNREADABLE))
    assert {letter.code for letter in letters} == {"invalid_job"}
    assert Counter(letter.value for letter in letters) == Counter(UNREADABLE.values())
    assert bench.redis.keys("dragoman:job:*") == [b"dragoman:job:after"]
    wait_until(bench.all_committed, timeout_s=20, what="everything is committed")


INVALID: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown-field": (a_job("unknown-field", targetlang="de"), "invalid_job", "targetlang"),
    "language": (a_job("language") | {"target_lang": "xx-nonsense"}, "unsupported_language", "xx"),
    "profile": (a_job("profile", profile="nope"), "unknown_profile", "nope"),
    "glossary": (a_job("glossary", glossary_id="g"), "unknown_glossary", "g"),
    "items": (a_job("items", ["x"] * 513), "invalid_job", "512"),
    "type": (a_job("type", 5), "invalid_job", "text"),
    "schema": (a_job("schema", schema=2), "unsupported_schema", "2"),
    "size": (a_job("size", "x" * 140_000), "invalid_job", "131072"),
    "record": (a_job("record", pad="x" * 1_100_000), "invalid_job", "1000000"),
}


def test_invalid_jobs_fail_visibly_with_the_field_and_the_limit(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    big = {"max.message.bytes": "5000000"}
    name = topic(partitions=2, configs=big)
    kafka.create_topic(f"{name}-dead", 1)
    bench = Bench(kafka, redis_server, name, tmp_path)
    with bench.worker:
        bench.worker.ready()
        bench.publish(*(value for value, _, _ in INVALID.values()))
        for job_id, (_, code, fragment) in INVALID.items():
            fields = bench.ended(job_id)
            assert fields["status"] == "failed", job_id
            assert fields["result"]["error"]["code"] == code, job_id
            assert fragment in fields["result"]["error"]["message"], job_id
            assert len(fields["result"]["error"]["message"]) < 500
        letters = {
            letter.headers["x-job-id"]: letter for letter in bench.dead_letters(len(INVALID))
        }
    assert {job_id: letter.code for job_id, letter in letters.items()} == {
        job_id: code for job_id, (_, code, _) in INVALID.items()
    }
    stub = letters["record"]  # larger than the dead-letter topic accepts: only its headers remain
    assert stub.value is None
    assert int(stub.headers["x-original-size"]) > 1_000_000


def test_the_same_job_twice_runs_once_and_another_payload_is_a_conflict(bench: Bench) -> None:
    bench.publish(*[a_job("same", "#!sleep 0.3\nOne")] * 20)
    first = bench.ended("same")
    bench.publish(a_job("same", "#!sleep 0.3\nOne"), a_job("same", "Other"))
    (letter,) = bench.dead_letters(1)
    assert letter.code == "conflict"
    assert letter.headers["x-job-id"] == "same"
    assert job(bench.redis, "same") == first
    assert first["deliveries"] == "1"
    wait_until(bench.all_committed, timeout_s=20, what="everything is committed")
    assert bench.worker.metric("dragoman_tokens_total") == sum(
        first["result"]["usage"][kind] for kind in ("prompt_tokens", "completion_tokens")
    )


FAULTS = {
    "fatal": ("#!fatal\nx", 1),
    "empty": ("#!empty\nx", 3),
    "length": ("#!length\nx", 3),
    "repeat": ("#!repeat\nx", 3),
}


def test_engine_faults_end_as_engine_failed_after_the_attempts_that_could_help(
    bench: Bench,
) -> None:
    bench.publish(*(a_job(name, [text, "good"]) for name, (text, _) in FAULTS.items()))
    bench.publish(a_job("transient", "#!transient 2\nx"), a_job("copy", "#!copy\nx"))
    for name, (_, attempts) in FAULTS.items():
        fields = bench.ended(name)
        bad, good = fields["result"]["translations"]
        assert (fields["status"], bad["error"]["code"]) == ("failed", "engine_failed"), name
        assert (bad["text"], bad["attempts"]) == (None, attempts), name
        assert good["text"] == "[de] good", "a failed job keeps the items that succeeded"
    assert bench.ended("transient")["result"]["attempts"] == 3
    assert bench.ended("copy")["status"] == "completed"


def test_a_replay_runs_a_failed_job_again_and_never_a_completed_one(bench: Bench) -> None:
    bench.publish(a_job("fails", "#!fatal\nx"), a_job("works"))
    assert bench.ended("fails")["status"] == "failed"
    before = bench.ended("works")
    for value in (a_job("fails", "#!fatal\nx"), a_job("works")):
        publish_with_headers(bench.kafka, bench.topic, value, [("dragoman-replay", b"1")])
    wait_until(
        lambda: job(bench.redis, "fails").get("replays") == "1", timeout_s=30, what="the replay"
    )
    assert bench.ended("fails")["deliveries"] == "2"
    wait_until(bench.all_committed, timeout_s=20, what="everything is committed")
    assert job(bench.redis, "works") == before


def test_deadlines_and_lifetimes_are_kept(bench: Bench) -> None:
    bench.publish(
        a_job("late", deadline="2020-01-01T00:00:00Z"),
        a_job("short", ttl_s=60),
        a_job("usual"),
    )
    late = bench.ended("late")
    assert late["status"] == "expired"
    assert late["result"]["translations"][0]["error"]["code"] == "deadline_exceeded"
    bench.ended("short")
    bench.ended("usual")
    assert 50 < bench.redis.ttl("dragoman:job:short") <= 60
    assert 86_000 < bench.redis.ttl("dragoman:job:usual") <= 86_400
    assert read_all(bench.kafka, bench.worker.dead_letter_topic) == []


def test_a_large_job_does_not_hold_up_a_small_one(bench: Bench) -> None:
    slow = [f"#!sleep 0.2\nItem {number}" for number in range(512)]
    bench.publish(*(a_job(f"large{number}", slow) for number in range(4)), a_job("small"))
    assert bench.ended("small")["status"] == "completed"
    assert job(bench.redis, "large3").get("status") != "completed"


def test_all_codecs_and_the_metrics_page(bench: Bench) -> None:
    from confluent_kafka import Producer

    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bench.kafka, "compression.type": codec})
        for number in range(20):
            value = json.dumps(a_job(f"{codec}-{number}", "Hello. " * 20))
            producer.produce(bench.topic, value)
        assert producer.flush(10) == 0
        for number in range(20):
            assert bench.ended(f"{codec}-{number}")["status"] == "completed"
    status, page = bench.worker.get("/metrics")
    assert status == 200
    assert bench.worker.metric("dragoman_jobs_total") == 100
    for name in CONTRACT_METRICS:
        assert f"# TYPE {name} " in page, name
    assert 'replica="0"' in page


CONTRACT_METRICS = [
    "dragoman_jobs_total",
    "dragoman_items_total",
    "dragoman_dead_letters_total",
    "dragoman_retries_total",
    "dragoman_redeliveries_total",
    "dragoman_jobs_in_flight",
    "dragoman_items_in_flight",
    "dragoman_lag_jobs",
    "dragoman_lag_seconds",
    "dragoman_job_seconds",
    "dragoman_decode_seconds_per_token",
    "dragoman_commit_age_seconds",
    "dragoman_event_loop_lag_seconds",
    "dragoman_bottleneck",
]


def test_progress_events_and_the_results_topic_follow_a_finish(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(partitions=2)
    results = topic(partitions=1)
    kafka.create_topic(f"{name}-dead", 1)
    bench = Bench(kafka, redis_server, name, tmp_path)
    bench.worker = bench.new_worker(kafka__results_topic=results)
    place = {"document_id": "doc", "total": 3}
    with bench.worker:
        bench.worker.ready()
        bench.publish(
            a_job("d.0", document={**place, "index": 0}),
            a_job("d.2", "#!fatal\nx", document={**place, "index": 2}),
        )
        bench.ended("d.0")
        bench.ended("d.2")
        wait_until(
            lambda: progress(bench.redis, "doc") == ({0, 2}, {0}),
            timeout_s=30,
            what="the progress of the document",
        )
        wait_until(lambda: len(read_all(bench.kafka, results)) == 2, timeout_s=30, what="results")
    events: Any = bench.redis.xrange("dragoman:events")
    assert {(fields[b"job_id"], fields[b"status"]) for _, fields in events} == {
        (b"d.0", b"completed"),
        (b"d.2", b"failed"),
    }
    streamed = [json.loads(record.value or b"") for record in read_all(bench.kafka, results)]
    assert {result["job_id"]: result["status"] for result in streamed} == {
        "d.0": "completed",
        "d.2": "failed",
    }


def test_a_drain_finishes_running_jobs_and_a_second_signal_aborts_them(supervised: Bench) -> None:
    supervised.publish(*(a_job(f"j{number}", "#!sleep 3\nx") for number in range(50)))
    wait_until(
        lambda: supervised.worker.metric("dragoman_jobs_in_flight") >= 50,
        timeout_s=30,
        what="in flight",
    )
    supervised.worker.terminate()
    assert supervised.worker.wait(timeout_s=60) == 0
    for number in range(50):
        fields = job(supervised.redis, f"j{number}")
        assert (fields["status"], fields["deliveries"]) == ("completed", "1")
    assert supervised.all_committed()
    supervised.publish(a_job("hangs", "#!hang\nx"))
    with supervised.new_worker("second") as worker:
        worker.ready()
        wait_until(
            lambda: job(supervised.redis, "hangs").get("status") == "running",
            timeout_s=30,
            what="the job runs",
        )
        worker.terminate()
        worker.wait_for(lambda: "draining" in worker.output, timeout_s=20, what="draining")
        worker.terminate()
        assert worker.wait(timeout_s=20) == 0  # its grace is 25 s
    fields = job(supervised.redis, "hangs")
    assert fields["status"] == "queued", "an abort releases its claims"
    assert not [name for name in fields if name.startswith("claim:")]


def test_a_killed_worker_loses_nothing_and_changes_no_result(supervised: Bench) -> None:
    ids = [f"k{number}" for number in range(400)]
    supervised.publish(
        *(a_job(name, f"#!sleep {3 if int(name[1:]) % 2 else 0.01}\n{name}") for name in ids)
    )
    wait_until(
        lambda: supervised.worker.metric("dragoman_items_in_flight") >= 200,
        timeout_s=20,
        what="200 in flight",
    )
    done_before = {
        name: fields for name in ids if (fields := job(supervised.redis, name)).get("result")
    }
    supervised.worker.kill(everything=True)
    with supervised.new_worker("second") as second:
        second.ready()
        for name in ids:
            assert supervised.ended(name)["result"]["translations"][0]["text"] == f"[de] {name}"
        assert {name: job(supervised.redis, name) for name in done_before} == done_before
        wait_until(supervised.all_committed, timeout_s=30, what="everything is committed")
    assert read_all(supervised.kafka, supervised.worker.dead_letter_topic) == []
