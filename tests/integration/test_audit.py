"""Integration tests of `dragoman audit` with a real worker, Kafka and Redis."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.processes.installation import Installation, a_job
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, publish_with_headers
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


def publish_one_of_each(installation: Installation) -> None:
    """Publish a record for every outcome, except those that only time brings."""
    installation("cancel", "cancelled")
    installation.publish(
        *(a_job(f"good-{number}") for number in range(50)),
        *(a_job(f"bad-{number}", "#!fatal\nHello.") for number in range(5)),
        a_job("invalid", target_lang="xx-invalid-"),
        a_job("late", deadline="2020-01-01T00:00:00Z"),
        a_job("cancelled"),
        a_job("good-0"),
        a_job("bad-0", "#!fatal\nHello."),
        a_job("good-1", "Another text."),
        b"not a job",
        None,
        b"[1]",
    )


EXPECTED = {
    "completed": 50,
    "failed": 6,
    "cancelled": 1,
    "expired": 1,
    "duplicate": 2,
    "conflict": 1,
    "unreadable": 3,
}


def test_every_outcome_is_accounted_for_before_and_after_a_worker_ran(
    installation: Installation,
) -> None:
    publish_one_of_each(installation)
    status, sums, broken = installation.audit()
    assert (status, broken) == (0, [])
    # Both payloads of good-1 are waiting; the first one claimed will be the job.
    assert sums == {"live": 61, "cancelled": 1, "duplicate": 2}
    with installation.worker():
        installation.settled()
        assert installation.audit() == (0, EXPECTED, [])
    table = installation("audit")
    assert table.returncode == 0
    assert "balances" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 60


def test_a_working_replica_is_seen_by_the_audit_and_gives_a_dry_run_its_rate(
    installation: Installation,
) -> None:
    rows = installation.folder / "rows.csv"
    rows.write_text("id,text\n1,One shirt.\n2,A hat.\n", "utf-8")
    dry_run = ("translate", str(rows), "--to", "de", "--out", str(installation.folder / "out"))

    def said() -> dict[str, Any]:
        found = installation.redis.hget("dragoman:workers", f"seen-{installation.topic}")
        return json.loads(found) if found else {}

    with installation.worker(worker_id=f"seen-{installation.topic}"):
        installation.publish(*(a_job(f"seen-{number}") for number in range(50)))
        wait_until(lambda: said().get("jobs_per_s"), timeout_s=60, what="a rate")
        status, (summary,) = installation.objects("audit")
        seen = {each["replica"]: each for each in summary["workers"]}
        assert status == 0
        assert seen[f"seen-{installation.topic}"]["jobs_per_s"] > 0
        _, (totals,) = installation.objects(*dry_run, "--dry-run")
        budget = totals["planned"]["budget"]
        assert budget["seconds"] > 0
        assert "live worker" in budget["seconds_by"]
        assert budget["seconds_at_most"]
    assert installation.audit()[0] == 0


def test_lost_keys_missing_dead_letters_and_stuck_jobs_are_reported(
    installation: Installation,
) -> None:
    publish_one_of_each(installation)
    with installation.worker():
        installation.settled()
    lost, failed, stuck = "dragoman:job:good-7", "dragoman:job:good-8", "dragoman:job:good-9"
    installation.redis.delete(lost)
    installation.redis.hset(failed, "status", "failed")
    installation.redis.hset(stuck, "status", "running")
    status, sums, broken = installation.audit()
    assert status == 1
    named = {(one["account"], one["job_id"]) for one in broken}
    assert named == {("lost", "good-7"), ("no_dead_letter", "good-8"), ("stuck", "good-9")}
    assert all(one["place"].startswith(f"{installation.topic}/") for one in broken)
    changed = {"completed": 47, "lost": 1, "no_dead_letter": 1, "stuck": 1}
    assert sums == EXPECTED | changed
    printed = installation("audit", "--show", "1")
    assert printed.returncode == 1
    assert len([line for line in printed.stdout.splitlines() if "\t" in line]) == 1


def test_unreadable_records_and_conflicts_without_dead_letters_are_reported_by_place(
    installation: Installation, kafka: KafkaBroker
) -> None:
    publish_one_of_each(installation)
    with installation.worker():
        installation.settled()
    installation.env["DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC"] = kafka.create_topic(
        f"{installation.topic}-empty"
    )
    status, sums, broken = installation.audit()
    assert status == 1
    assert sums["no_dead_letter"] == len(broken) == 10
    assert len({one["place"] for one in broken}) == 10
    assert [one["job_id"] for one in broken].count(None) == 3


def test_results_past_their_ttl_are_distinguished_from_lost_ones(
    installation: Installation,
) -> None:
    installation.publish(a_job("short", ttl_s=60), a_job("long"))
    with installation.worker():
        installation.settled()
    # A record of two minutes ago: the broker keeps the producer's timestamp.
    producer = Producer({"bootstrap.servers": installation.kafka})
    old = int((time.time() - 120) * 1000)
    value = json.dumps(a_job("aged", ttl_s=60)).encode()
    producer.produce(installation.topic, value, key="aged", timestamp=old)
    assert producer.flush(30) == 0
    with installation.worker("second"):
        ended(installation.redis, "aged")
        installation.settled()
    installation.redis.delete("dragoman:job:aged", "dragoman:job:short")
    status, sums, broken = installation.audit()
    assert (status, sums) == (1, {"completed": 1, "aged_out": 1, "lost": 1})
    assert [one["job_id"] for one in broken] == ["short"]


def test_a_replayed_job_is_one_job_while_it_runs_and_after(installation: Installation) -> None:
    job = a_job("slow", "#!fatal\n#!sleep 1\nHello.")
    installation.publish(job)
    with installation.worker():
        ended(installation.redis, "slow")
        installation.settled()
    header = [("dragoman-replay", b"1")]
    publish_with_headers(installation.kafka, installation.topic, job, header)
    assert installation.audit() == (0, {"failed": 1, "duplicate": 1}, [])
    with installation.worker("mended", engine__echo__faults=False):
        installation.settled()
    assert installation.audit() == (0, {"completed": 1, "duplicate": 1}, [])
    assert len(installation.letters()) == 1


def test_a_job_cancelled_before_it_was_read_may_be_submitted_again_with_another_text(
    installation: Installation,
) -> None:
    installation("cancel", "fixed")
    installation.publish(a_job("fixed", "Wrong text."))
    corrected, header = a_job("fixed", "Right text."), [("dragoman-replay", b"1")]
    with installation.worker():
        installation.settled()
        publish_with_headers(installation.kafka, installation.topic, corrected, header)
        installation.settled()
    assert installation.audit() == (0, {"cancelled": 1, "completed": 1}, [])


def test_a_missing_topic_is_reported(installation: Installation) -> None:
    installation.env["DRAGOMAN_KAFKA__TOPICS"] = '["no-such-topic"]'
    done = installation("audit")
    assert done.returncode == 1
    assert "no-such-topic" in done.stderr


def test_an_audit_during_work_reports_nothing_broken(installation: Installation) -> None:
    with installation.worker(engine__echo__latency_s=0.05, limits__max_engine_items=8):
        installation.publish(
            *(a_job(f"good-{number}") for number in range(600)),
            *(a_job(f"good-{number}") for number in range(0, 600, 9)),
            *(a_job(f"bad-{number}", "#!fatal\nHello.") for number in range(100)),
            # Jobs of which no duplicate stands: records of one id may be claimed in any order.
            *(a_job(f"good-{number}", "Another text.") for number in range(4, 544, 18)),
            *(b"no job" for _ in range(20)),
        )
        seen = [installation.audit() for _ in range(4)]
        assert [(status, broken) for status, _, broken in seen] == 4 * [(0, [])]
        assert seen[0][1]["live"] > 0
        installation.settled()
    assert installation.audit() == (
        0,
        {"completed": 600, "failed": 100, "duplicate": 67, "conflict": 30, "unreadable": 20},
        [],
    )
