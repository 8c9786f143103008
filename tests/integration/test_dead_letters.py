"""Integration tests of `dragoman dead-letters` with a real worker, Kafka and Redis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.processes.child_process import ChildProcess, command
from support.processes.installation import Installation, a_job
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, job, publish_with_headers
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]


@pytest.fixture
def installation(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> Iterator[Installation]:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 2)
    made = Installation(kafka, redis_server, name, tmp_path)
    yield made
    made.redis.close()


def replays(installation: Installation) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Return the records of the jobs' topic that request a replay."""
    found = installation.read(installation.topic)
    return [
        (json.loads(record.value or b""), record.headers)
        for record in found
        if "dragoman-replay" in record.headers
    ]


def failed(installation: Installation, *jobs: dict[str, Any] | bytes | None) -> None:
    """Publish jobs and let a worker whose engine breaks on faults settle them."""
    installation.publish(*jobs)
    with installation.worker("broken"):
        installation.settled()


def test_dead_letters_are_listed_by_code_id_and_time_and_shown_with_text_on_request(
    installation: Installation,
) -> None:
    failed(installation, a_job("bad", "#!fatal\nGood day."), a_job("odd", nonsense=1), b"no job")
    status, dead_letters = installation.objects("dead-letters", "list")
    assert status == 0
    assert {(one["job_id"], one["code"]) for one in dead_letters} == {
        ("bad", "engine_failed"),
        ("odd", "invalid_job"),
        (None, "invalid_job"),
    }
    _, by_code = installation.objects("dead-letters", "list", "--code", "invalid_job")
    assert {one["job_id"] for one in by_code} == {"odd", None}
    _, counts = installation.objects("dead-letters", "list", "--by", "code")
    assert {one["code"]: one["count"] for one in counts} == {"engine_failed": 1, "invalid_job": 2}
    assert "engine_failed\t1\tbad\n" in installation("dead-letters", "list", "--by", "code").stdout
    assert installation("dead-letters", "list", "--by", "age").returncode == 2
    _, by_id = installation.objects("dead-letters", "list", "--id", "bad")
    assert [one["job_id"] for one in by_id] == ["bad"]
    at = by_id[0]["at"]
    _, since = installation.objects("dead-letters", "list", "--id", "bad", "--since", at)
    _, until = installation.objects("dead-letters", "list", "--id", "bad", "--until", at)
    assert (len(since), len(until)) == (1, 0)
    assert len(installation.objects("dead-letters", "list", "--limit", "2")[1]) == 2
    printed = (
        installation("dead-letters", "list").stdout
        + installation("dead-letters", "show", "bad").stdout
    )
    assert "engine_failed" in printed
    assert "Good day." not in printed
    shown = installation("dead-letters", "show", "bad", "--value")
    assert shown.returncode == 0
    assert "Good day." in shown.stdout
    place = next(one["origin"] for one in dead_letters if one["job_id"] is None)
    _, (unreadable,) = installation.objects("dead-letters", "show", place, "--value")
    assert unreadable["value"] == "no job"
    assert ["x-error-code", "invalid_job"] in unreadable["headers"]
    assert installation("dead-letters", "show", "bad", "unheard-of").returncode == 3
    assert installation("dead-letters", "show", "unheard-of").returncode == 1


def test_failed_jobs_complete_after_the_fault_is_fixed_and_each_failure_is_replayed_once(
    installation: Installation,
) -> None:
    jobs = [a_job(f"bad-{number}", "#!fatal\nHello.", metadata={"k": "v"}) for number in range(20)]
    failed(installation, *jobs)
    status, printed = installation.objects("dead-letters", "replay", "--all", "--dry-run")
    assert (status, {one["action"] for one in printed}) == (0, {"would_replay"})
    assert replays(installation) == []
    # Two replays before a worker claims the first have the same number: one run per failure.
    for _ in range(2):
        status, printed = installation.objects("dead-letters", "replay", "--all")
        assert (status, len(printed)) == (0, 20)
        assert {(one["action"], one["replay"]) for one in printed} == {("replayed", 1)}
    published = replays(installation)
    assert len(published) == 40
    assert all(headers == {"dragoman-replay": "1"} for _, headers in published)
    assert sorted(value["job_id"] for value, _ in published) == sorted(
        2 * [one["job_id"] for one in jobs]
    )
    with installation.worker("mended", engine__echo__faults=False):
        installation.settled()
    for one in jobs:
        fields = job(installation.redis, one["job_id"])
        assert (fields["status"], fields["replays"]) == ("completed", "1")
        assert fields["deliveries"] == "2"
    assert len(installation.letters()) == 20
    # Once all jobs are completed there is nothing to replay.
    status, printed = installation.objects("dead-letters", "replay", "--all")
    assert (status, {one["why"] for one in printed}) == (1, {"completed"})
    assert len(replays(installation)) == 40
    assert installation.audit() == (0, {"completed": 20, "duplicate": 40}, [])


def test_a_job_that_fails_again_is_replayed_by_the_next_number(installation: Installation) -> None:
    failed(installation, a_job("bad", "#!fatal\nHello."))
    for number in (1, 2):
        status, printed = installation.objects("dead-letters", "replay", "bad")
        assert (status, printed[0]["replay"]) == (0, number)
        with installation.worker(f"worker-{number}"):
            installation.settled()
        fields = job(installation.redis, "bad")
        assert (fields["status"], fields["replays"]) == ("failed", str(number))
    dead_letters = installation.letters()
    assert sorted(
        dead_letter.headers.get("dragoman-replay", "") for dead_letter in dead_letters
    ) == ["", "1", "2"]
    # Three dead letters of one job are one replay, with one header.
    status, printed = installation.objects("dead-letters", "replay", "--all")
    assert status == 0
    assert sorted(one["action"] for one in printed) == ["replayed", "skipped", "skipped"]
    assert {one["why"] for one in printed if one["action"] == "skipped"} == {"same_job"}
    assert sorted(headers["dragoman-replay"] for _, headers in replays(installation)) == [
        "1",
        "2",
        "3",
    ]


def test_a_replay_removes_the_cancellation_of_its_document_and_a_dry_run_does_not(
    installation: Installation,
) -> None:
    page = {"document_id": "book", "index": 0, "total": 1}
    failed(installation, a_job("page", "#!fatal\nHello.", document=page))
    assert installation("cancel", "--document", "book").returncode == 0
    mark = "dragoman:document:book:cancel"
    assert installation("dead-letters", "replay", "page", "--dry-run").returncode == 0
    assert installation.redis.exists(mark) == 1
    assert installation("dead-letters", "replay", "page").returncode == 0
    assert installation.redis.exists(mark) == 0
    with installation.worker("mended", engine__echo__faults=False):
        installation.settled()
    assert job(installation.redis, "page")["status"] == "completed"


def test_headers_are_kept_and_a_past_deadline_is_dropped(installation: Installation) -> None:
    # The key owns the payload; the deadline passes between the failure and its replay.
    value = a_job("late", "#!fatal\nHello.", deadline="2030-01-01T00:00:00Z")
    trace = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    publish_with_headers(installation.kafka, installation.topic, value, [trace])
    with installation.worker():
        ended(installation.redis, "late")
        installation.settled()
    past = {**value, "deadline": "2020-01-01T00:00:00Z"}
    dead_letters = installation.letters()
    producer = Producer({"bootstrap.servers": installation.kafka})
    headers = [(name, content.encode()) for name, content in dead_letters[0].headers.items()]
    headers = [pair for pair in headers if pair[0] != "x-original-offset"]
    producer.produce(
        f"{installation.topic}-dead",
        json.dumps(past).encode(),
        key="late",
        headers=[*headers, ("x-original-offset", b"99")],
    )
    assert producer.flush(30) == 0
    name = f"{installation.topic}/{dead_letters[0].headers['x-original-partition']}/99"
    status, printed = installation.objects("dead-letters", "replay", name)
    assert (status, printed[0]["action"]) == (0, "replayed")
    ((replayed, kept),) = replays(installation)
    assert replayed == {key: content for key, content in value.items() if key != "deadline"}
    assert kept == {"traceparent": trace[1].decode(), "dragoman-replay": "1"}
    with installation.worker("mended", engine__echo__faults=False):
        installation.settled()
    assert job(installation.redis, "late")["status"] == "completed"


def test_skipped_dead_letters_are_reported_with_reasons_and_status_three(
    installation: Installation,
) -> None:
    failed(
        installation,
        a_job("good"),
        a_job("good", "Another text."),
        a_job("bad", "#!fatal\nHello."),
        b"no job",
    )
    done = installation("dead-letters", "replay", "--all")
    assert done.returncode == 3
    assert "1 (conflict)" in done.stderr
    assert "1 (unreadable)" in done.stderr
    assert "replayed: 1" in done.stderr
    status, printed = installation.objects("dead-letters", "replay", "good", "unheard-of")
    assert (status, [one["why"] for one in printed]) == (1, ["completed"])
    installation.redis.delete("dragoman:job:good")
    status, printed = installation.objects("dead-letters", "replay", "good", "--rate", "100/s")
    assert (status, printed[0]["action"], printed[0]["code"]) == (0, "replayed", "conflict")


def test_the_dead_letter_of_a_record_too_large_for_any_topic_cannot_be_replayed(
    installation: Installation,
) -> None:
    installation.publish(b'{"job_id": "huge", "text": "' + b"x" * 1_040_000 + b'"}')
    with installation.worker():
        installation.settled()
    status, printed = installation.objects("dead-letters", "replay", "huge")
    assert (status, [one["why"] for one in printed]) == (1, ["headers_only"])


def test_an_interrupted_replay_reports_its_count_and_the_next_one_runs_no_job_twice(
    installation: Installation,
) -> None:
    ids = [f"job-{number}" for number in range(12)]
    dead_letters(installation, *ids)
    slow = ChildProcess(
        command("dragoman", "dead-letters", "replay", "--all", "--rate", "2/s"),
        log=installation.folder / "replay",
        env=installation.env,
        split_streams=True,
    ).start()
    wait_until(lambda: len(replays(installation)) >= 3, timeout_s=60, what="replayed jobs")
    slow.interrupt()
    assert slow.wait(timeout_s=30) == 130
    printed = len(slow.output.splitlines())
    assert f"replayed so far: {printed}" in slow.errors
    assert 3 <= printed <= len(replays(installation)) < 12
    status, again = installation.objects("dead-letters", "replay", "--all")
    assert (status, {one["replay"] for one in again}) == (0, {1})
    with installation.worker():
        installation.settled()
    jobs = [job(installation.redis, job_id) for job_id in ids]
    assert {(one["status"], one["deliveries"]) for one in jobs} == {("completed", "1")}


def dead_letters(installation: Installation, *job_ids: str, **more: str) -> None:
    """Publish dead letters of valid jobs, as a worker writes them."""
    producer = Producer({"bootstrap.servers": installation.kafka})
    for number, job_id in enumerate(job_ids):
        headers = {
            "x-original-topic": installation.topic,
            "x-original-partition": "0",
            "x-original-offset": str(number),
            "x-job-id": job_id,
            "x-error-code": "engine_failed",
        } | more
        producer.produce(
            f"{installation.topic}-dead",
            json.dumps(a_job(job_id)).encode(),
            key=job_id,
            headers=[(name, content.encode()) for name, content in headers.items()],
        )
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay",),
        ("replay", "a", "--all"),
        ("replay", "a", "--rate", "fast"),
        ("list", "--since", "yesterday"),
        ("list", "--until", "2030-01-01T00:00:00"),
    ],
)
def test_a_usage_error_is_one_line_and_status_two(
    installation: Installation, arguments: tuple[str, ...]
) -> None:
    done = installation("dead-letters", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_thousands_of_dead_letters_are_streamed_and_each_is_listed_once(
    installation: Installation,
) -> None:
    producer = Producer({"bootstrap.servers": installation.kafka, "linger.ms": 20})
    for number in [*range(6000), *range(100)]:
        job_id = f"many-{number}"
        headers = {
            "x-original-topic": installation.topic,
            "x-original-partition": "0",
            "x-original-offset": str(number),
            "x-job-id": job_id,
            "x-error-code": "engine_failed" if number % 3 else "poisoned",
        }
        producer.produce(
            f"{installation.topic}-dead",
            json.dumps(a_job(job_id)).encode(),
            key=job_id,
            headers=[(name, content.encode()) for name, content in headers.items()],
        )
        producer.poll(0)
    assert producer.flush(30) == 0
    status, dead_letters = installation.objects("dead-letters", "list")
    assert status == 0
    assert len({one["job_id"] for one in dead_letters}) == len(dead_letters) == 6000
    status, printed = installation.objects("dead-letters", "replay", "--all", "--code", "poisoned")
    assert status == 0
    assert sum(one["action"] == "replayed" for one in printed) == 2000
    assert {one["why"] for one in printed if one["action"] == "skipped"} == {"duplicate"}
    assert len(replays(installation)) == 2000
