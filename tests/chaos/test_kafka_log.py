"""Every record of a real Kafka log is accounted for, whatever the log holds or loses."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from support.processes.job_line import JobLine
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, job, read_all
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.chaos

MakeLine = Callable[..., JobLine]


@pytest.fixture
def make_line(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> Iterator[MakeLine]:
    """Return a function that makes a line on a new topic, without a worker: `make_line(6)`."""
    made: list[JobLine] = []

    def make(partitions: int, configs: dict[str, str] | None = None) -> JobLine:
        name = topic(partitions=partitions, configs=configs)
        kafka.create_topic(f"{name}-dead", 1)
        made.append(
            JobLine(
                tmp_path,
                kafka=kafka.bootstrap,
                redis_url=redis_server.url,
                topic=name,
                partitions=partitions,
            )
        )
        return made[-1]

    yield make
    for line in made:
        line.__exit__(None, None, None)


@pytest.fixture
def admin(kafka: KafkaBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})


def put_in(line: JobLine, partition: int, *values: bytes | None, **options: Any) -> None:
    """Publish raw values into one partition, in one batch if they fit."""
    producer = Producer(
        {"bootstrap.servers": line.kafka, "message.max.bytes": 10_000_000, "linger.ms": 50}
        | options
    )
    for value in values:
        producer.produce(line.topic, value, partition=partition)
    assert producer.flush(30) == 0


def new_jobs(line: JobLine, count: int) -> tuple[list[str], list[bytes]]:
    """Return ids and records of unpublished jobs whose text is their id."""
    jobs = [line.job() for _ in range(count)]
    for each in jobs:
        each["text"] = each["job_id"]
    return [each["job_id"] for each in jobs], [json.dumps(each).encode() for each in jobs]


# --- contents of records --------------------------------------------------------------------------

POISON: dict[str, tuple[bytes | None, str]] = {
    "bad JSON": (b'{"job_id": "p1", "text": ', "invalid_job"),
    "invalid UTF-8": (b'{"job_id": "p2\xff"}', "invalid_job"),
    "empty": (b"", "invalid_job"),
    "a null value": (None, "invalid_job"),
    "one byte": (b"\x00", "invalid_job"),
    "10,000 levels deep": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "invalid_job"),
    "NaN": (b'{"job_id": "p3", "text": "a", "target_lang": "de", "ttl_s": NaN}', "invalid_job"),
    "repeated names": (b'{"job_id": "p4", "job_id": "p5", "text": "a"}', "invalid_job"),
    "a list": (b"[1, 2]", "invalid_job"),
    "wrong types": (b'{"job_id": "p6", "text": 5, "target_lang": ["de"]}', "invalid_job"),
    "unknown language": (
        b'{"job_id": "p7", "text": "a", "target_lang": "xx-none"}',
        "unsupported_language",
    ),
    "900 KB of nothing": (b"\x00" * 900_000, "invalid_job"),
}
WITH_READABLE_ID = {"p6": "failed", "p7": "failed"}


def test_invalid_records_in_one_partition_become_dead_letters_and_affect_no_other(
    make_line: MakeLine,
) -> None:
    line = make_line(6)
    ids: list[str] = []
    for partition in range(1, 6):
        some, records = new_jobs(line, 40)
        ids += some
        put_in(line, partition, *records)
    between, records = new_jobs(line, len(POISON))
    put_in(line, 0, *(v for pair in zip(records, poison_values(), strict=True) for v in pair))
    line.working()
    line.check(ids + between)

    letters = {int(letter.headers["x-original-offset"]): letter for letter in line.dead_letters(12)}
    assert len(letters) == len(read_all(line.kafka, line.dead)) == len(POISON)
    for number, (what, (value, code)) in enumerate(POISON.items()):
        letter = letters[2 * number + 1]
        assert letter.code == code, what
        # aiokafka cannot send a record with neither key nor value.
        assert (letter.value or b"") == (value or b""), what
        assert letter.headers["x-original-topic"] == line.topic
        assert letter.headers["x-original-partition"] == "0"
        assert letter.headers["x-consumer-group"] == line.group
        assert int(letter.headers["x-original-timestamp"]) > 0
        assert letter.headers["x-error-message"]
    named = {letter.headers.get("x-job-id") for letter in letters.values()} - {None}
    assert named == set(WITH_READABLE_ID)
    for job_id, status in WITH_READABLE_ID.items():
        assert job(line.redis, job_id)["status"] == status
    assert {job(line.redis, job_id)["deliveries"] for job_id in ids + between} == {"1"}
    assert line.worker.metric("dragoman_redeliveries_total") == 0
    assert line.worker.metric("dragoman_jobs_total") == len(ids + between + [*WITH_READABLE_ID])


def poison_values() -> list[bytes | None]:
    return [value for value, _ in POISON.values()]


def test_a_worker_without_the_codec_library_exits_at_its_start_and_skips_nothing(
    make_line: MakeLine, tmp_path: Path
) -> None:
    line = make_line(2)
    # One library reads all codecs but gzip.
    missing = "raise ModuleNotFoundError(\"No module named 'cramjam'\", name='cramjam')\n"
    (tmp_path / "cramjam.py").write_text(missing)
    plain, records = new_jobs(line, 5)
    put_in(line, 0, *records)
    packed, records = new_jobs(line, 5)
    # Repeated bytes: the producer does not compress a batch that would not become smaller.
    put_in(line, 0, *(record + b" " * 500 for record in records), **{"compression.type": "zstd"})
    after, records = new_jobs(line, 5)
    put_in(line, 0, *records)

    worker = line.started(PYTHONPATH=str(tmp_path))
    wait_until(lambda: not worker.running, timeout_s=60, what="the worker has exited")
    assert "cramjam is not installed" in worker.output
    assert line.statuses(plain + packed + after) == [None] * 15
    line.working()
    line.check(plain + packed + after)


def test_a_record_larger_than_a_fetch_of_its_partition_is_not_skipped(make_line: MakeLine) -> None:
    line = make_line(3, configs={"max.message.bytes": str(6 * 1024 * 1024)})
    ids: list[str] = []
    for partition in range(3):
        some, records = new_jobs(line, 30)
        ids += some
        put_in(line, partition, *records)
    large = line.job(pad="x" * 5_000_000)
    for partition in (1, 2):  # at least one of them is not the first of a fetch
        put_in(line, partition, json.dumps(large | {"job_id": f"large-{partition}"}).encode())
    for partition in range(3):
        some, records = new_jobs(line, 30)
        ids += some
        put_in(line, partition, *records)
    line.working()
    for partition in (1, 2):
        assert ended(line.redis, f"large-{partition}")["status"] == "failed"
    line.check(ids)
    assert {letter.headers["x-job-id"] for letter in line.dead_letters(2)} == {"large-1", "large-2"}


# --- losses of the log ---------------------------------------------------------------------------


def delete_below(admin: AdminClient, line: JobLine, offset: int) -> None:
    deleted = admin.delete_records([TopicPartition(line.topic, 0, offset)])
    for future in deleted.values():
        future.result(timeout=20)


def test_records_deleted_while_no_worker_runs_are_counted_exactly(
    make_line: MakeLine, admin: AdminClient
) -> None:
    line = make_line(1)
    line.working()
    line.check(line.put(10))
    line.stop()
    ids = line.put(50)
    delete_below(admin, line, 30)  # ten of them were done
    line.working()
    line.check(ids[20:])
    assert line.worker.metric("dragoman_lost_to_retention_total") == 20
    assert line.statuses(ids[:20]) == [None] * 20
    line.stop()
    line.working()
    line.check(line.put(5))
    assert line.worker.metric("dragoman_lost_to_retention_total") == 0, "a loss is counted once"


def test_records_deleted_under_a_running_worker_are_counted_exactly(
    make_line: MakeLine, admin: AdminClient
) -> None:
    line = make_line(1)
    worker = line.working()
    line.check(line.put(10))
    stopped_group = os.getpgid(worker.pid)
    os.killpg(stopped_group, signal.SIGSTOP)
    try:
        # The first may still be part of the running fetch; the others are fetched later.
        ids = line.put(1) + line.put(60)
        delete_below(admin, line, 51)
    finally:
        os.killpg(stopped_group, signal.SIGCONT)
    line.check(ids[41:])
    gone = len(line.open(ids))
    assert gone in {40, 41}
    assert worker.metric("dragoman_lost_to_retention_total") == gone
    line.check(line.put(5))


def test_a_new_group_starts_at_the_oldest_record(make_line: MakeLine) -> None:
    line = make_line(3)
    ids = line.put(60)
    line.working()
    line.check(ids)


def recreate(line: JobLine, kafka: KafkaBroker, admin: AdminClient) -> None:
    """Delete the line's topic and create it anew, which also deletes its committed offsets."""
    admin.delete_topics([line.topic])[line.topic].result(timeout=20)
    wait_until(
        lambda: line.topic not in admin.list_topics(timeout=5).topics,
        timeout_s=20,
        what="the topic is gone",
    )
    kafka.create_topic(line.topic, line.partitions)


def test_a_recreated_topic_is_read_from_its_beginning(
    make_line: MakeLine, kafka: KafkaBroker, admin: AdminClient
) -> None:
    line = make_line(2)
    line.working()
    line.check(line.put(40))
    line.stop()
    recreate(line, kafka, admin)
    ids = line.put(20)
    line.working()
    line.check(ids)


def test_a_topic_recreated_while_its_worker_was_paused_is_read_from_its_beginning(
    make_line: MakeLine, kafka: KafkaBroker, admin: AdminClient
) -> None:
    line = make_line(1)
    worker = line.working()
    line.check(line.put(50))
    os.kill(worker.pid, signal.SIGSTOP)
    recreate(line, kafka, admin)
    ids = line.put(120)  # the worker goes on reading at offset 50
    os.kill(worker.pid, signal.SIGCONT)
    line.check(ids)
    assert worker.metric("dragoman_recreated_partitions_total") == 1


# --- transactions --------------------------------------------------------------------------------


def test_transaction_markers_and_aborted_records_hold_up_no_commit(
    make_line: MakeLine,
) -> None:
    line = make_line(1)
    worker = line.working()
    producer = Producer({"bootstrap.servers": line.kafka, "transactional.id": line.topic})
    producer.init_transactions(20)
    kept, aborted = [], []
    for commit in (True, False, True, False):
        ids, records = new_jobs(line, 10)
        producer.begin_transaction()
        for record in records:
            producer.produce(line.topic, record, partition=0)
        producer.flush(10)
        if commit:
            producer.commit_transaction(20)
            kept += ids
        else:
            producer.abort_transaction(20)
            aborted += ids
    line.wait_for_end(kept)
    # 40 records and 4 markers; the last 11 offsets will never be delivered.
    assert line.end_of(0) == 44
    line.wait_until_committed()
    worker.wait_for(lambda: worker.metric("dragoman_lag_jobs") == 0, timeout_s=30, what="no lag")
    more = line.put(10)
    line.check(kept + more)  # committed == end: the commit offset has passed every gap
    assert line.statuses(aborted) == [None] * len(aborted)
