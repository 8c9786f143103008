"""`submit FILE`, `result` and `status` of many jobs, with a real worker, Kafka and Redis."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.fakes.played_worker import records
from support.processes.child_process import ChildProcess, command
from support.processes.installation import Installation, a_job
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer


@pytest.fixture(scope="module")
def installation(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    name = kafka.create_topic(f"bulk-{uuid.uuid4().hex[:8]}", 2)
    kafka.create_topic(f"{name}-dead", 2)
    made = Installation(kafka, redis_server, name, tmp_path_factory.mktemp("bulk"))
    with made.worker():
        yield made
    made.redis.close()


@pytest.fixture
def lines(installation: Installation, tmp_path: Path) -> Callable[..., str]:
    def write(*jobs: dict[str, Any]) -> str:
        path = tmp_path / "jobs.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in jobs), "utf-8")
        return str(path)

    return write


Lines = Callable[..., str]


def test_lines_without_ids_are_submitted_again_at_no_cost(
    installation: Installation, lines: Lines
) -> None:
    texts = [f"Line {number} of no cost." for number in range(40)]
    path = lines(*({"text": text} for text in [*texts, texts[0], texts[0]]))
    first = installation("submit", "--to", "de,fr", path, "--wait")
    assert first.returncode == 0
    found = dict(line.split("\t") for line in first.stdout.splitlines())
    assert sorted(found.values()) == sorted(f"[{tag}] {t}" for tag in ("de", "fr") for t in texts)
    assert all(each.startswith("line.") and len(each) == 45 for each in found)
    assert "80 jobs published, 4 lines equal to an earlier one" in first.stderr
    before = count_of(installation)
    again = installation("submit", "--to", "de,fr", path)
    assert again.returncode == 0
    assert len(again.stdout.splitlines()) == 84
    assert set(again.stdout.splitlines()) == set(found)
    assert "0 jobs published, 4 lines equal to an earlier one, 80 completed before" in again.stderr
    assert count_of(installation) == before


def count_of(installation: Installation) -> int:
    _, (*_, summary) = installation.objects("audit")
    return int(summary["records"])


def test_json_lines_have_id_status_texts_and_error_and_the_summary_counts_causes(
    installation: Installation, lines: Lines
) -> None:
    path = lines(
        a_job("c-1", ["One.", "Two."]),
        a_job("c-2", "#!fatal\nOne."),
        a_job("c-3", deadline="2020-01-01T00:00:00Z"),
        a_job("c-4", profile="no-such"),
        {"job_id": "c-5"},
    )
    done = installation("submit", path, "--wait", "--json")
    found = {each["job_id"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 3
    assert found["c-1"] == {
        "job_id": "c-1", "status": "completed", "texts": ["[de] One.", "[de] Two."]
    }  # fmt: skip
    assert (found["c-2"]["status"], found["c-2"]["error"]["code"]) == ("failed", "engine_failed")
    assert found["c-3"]["status"] == "expired"
    assert "1 engine_failed (first c-2)" in done.stderr
    assert "1 deadline_exceeded (first c-3)" in done.stderr
    assert f"{path}:5: text: is required" in done.stderr


def test_a_failed_line_runs_again_only_with_resubmit_and_a_completed_one_never(
    installation: Installation, lines: Lines
) -> None:
    path = lines(a_job("f-1"), a_job("f-2", "#!fatal\nOne."))
    assert installation("submit", path, "--wait").returncode == 1
    kept = installation("submit", path)
    assert kept.returncode == 0
    assert "1 job ended before and will not run again: 1 failed (first f-2)" in kept.stderr
    again = installation("submit", path, "--resubmit", "--wait")
    assert again.stdout == "f-1\t[de] Hello.\n"
    assert "1 job published, 1 completed before" in again.stderr


def test_results_of_a_file_of_ids_are_exported_and_the_export_is_resumed(
    installation: Installation, lines: Lines, tmp_path: Path
) -> None:
    path = lines(*(a_job(f"e-{n}", f"Text {n}.") for n in range(30)), a_job("e-x", "#!fatal\nx"))
    installation("submit", path, "--wait")
    out = tmp_path / "results.jsonl"
    done = installation("result", path, "--out", str(out))
    assert done.returncode == 1
    assert "30 completed" in done.stderr
    assert "1 failed (engine_failed) (first e-x)" in done.stderr
    whole = out.read_bytes().splitlines(keepends=True)
    assert len(whole) == 31
    out.write_bytes(b"".join(whole[:10]) + whole[10][:40])  # killed while it wrote the eleventh
    assert installation("result", path, "--out", str(out)).returncode == 1
    assert sorted(out.read_bytes().splitlines(keepends=True)) == sorted(whole)
    again = installation("result", path, "--out", str(out))  # the failed one is read again
    assert "already has 30 results" in again.stderr
    assert sorted(out.read_bytes().splitlines(keepends=True)) == sorted(whole)
    out.write_text("notes\n")
    assert "results.jsonl:1: is no result" in installation("result", path, "--out", str(out)).stderr


def test_jobs_of_a_document_are_listed_with_those_that_expired_and_those_never_seen(
    installation: Installation, lines: Lines
) -> None:
    document = {"document_id": "many", "total": 4}
    jobs = [a_job(f"many.{n}", document={**document, "index": n}) for n in range(3)]
    jobs[1]["deadline"] = "2020-01-01T00:00:00Z"
    installation("submit", lines(*jobs), "--wait")
    done = installation("status", "--document", "many")
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        "many.0\tcompleted", "many.1\texpired", "many.2\tcompleted", "many.3\tunknown"
    ]  # fmt: skip
    told = "2 completed (first many.0), 1 expired (first many.1), 1 unknown (first many.3)"
    assert told in done.stderr
    texts = installation("result", "--document", "many")
    assert texts.stdout == "many.0\t[de] Hello.\nmany.2\t[de] Hello.\n"
    assert installation("status", "--document", "none").stderr == "dragoman status: no jobs found\n"


def test_ids_come_from_stdin_and_a_line_that_is_none_is_named(installation: Installation) -> None:
    wrong = installation.folder / "ids"
    wrong.write_text("a\n\nb c\n")
    done = installation("status", str(wrong))
    assert done.returncode == 2
    assert f"{wrong}:3: 'b c' is not a job id" in done.stderr
    wrong.write_text('{"text": "x"}\n')
    assert "has no job_id" in installation("result", str(wrong)).stderr


def test_a_wait_ends_when_its_time_is_up(installation: Installation, lines: Lines) -> None:
    path = lines(a_job("t-1", "#!hang\nOne."), a_job("t-2"))
    done = installation("submit", path, "--wait", "--timeout", "3", "--json")
    found = {each["job_id"]: each["status"] for each in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, found) == (3, {"t-1": "running", "t-2": "completed"})
    assert "1 without a result yet" in done.stderr
    waited = installation("status", "t-1", "t-2", "--wait", "--timeout", "0.2")
    assert (waited.returncode, waited.stdout) == (3, "t-1\trunning\nt-2\tcompleted\n")
    installation("cancel", "t-1")
    assert installation("status", "t-1", "--wait", "--timeout", "30").stdout == "t-1\tcancelled\n"


def test_options_of_the_command_reach_the_jobs_and_a_topic_is_chosen(
    installation: Installation, lines: Lines, kafka: KafkaBroker
) -> None:
    path = lines({"job_id": "o-1", "text": "One."})
    done = installation("submit", path, "--to", "de", "--ttl", "3600", "--wait")
    assert done.returncode == 0
    ttl: Any = installation.redis.ttl("dragoman:job:o-1")
    assert 3_000 < ttl <= 3_600
    other = f"{installation.topic}-other"
    kafka.create_topic(other, 1)
    elsewhere = lines({"job_id": "o-2", "text": "One."})
    assert installation("submit", elsewhere, "--to", "fr", "--topic", other).stdout == "o-2\n"
    [record] = records(kafka.bootstrap, other, 1)
    assert json.loads(record.value or b"")["target_lang"] == "fr"


def test_a_text_that_looks_like_a_file_is_translated_with_text(installation: Installation) -> None:
    done = installation("submit", "--to", "de,fr", "--id", "own", "--text", "a.csv", "--wait")
    assert (done.returncode, done.stdout) == (0, "own.de\t[de] a.csv\nown.fr\t[fr] a.csv\n")


# --- forget ---------------------------------------------------------------------------------------


def test_ended_jobs_are_forgotten_and_others_are_refused(
    installation: Installation, lines: Lines
) -> None:
    installation("submit", lines(a_job("g-1"), a_job("g-2")), "--wait")
    installation.redis.hset("dragoman:job:g-3", "status", "running")
    done = installation("forget", "g-1", "g-2", "g-3", "g-4")
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        "g-1\tremoved", "g-2\tremoved", "g-3\trunning", "g-4\tunknown"
    ]  # fmt: skip
    assert "job g-3 is running and was not removed; cancel it first" in done.stderr
    assert "not reached: dead letters" in done.stderr
    assert installation.redis.exists("dragoman:job:g-1", "dragoman:job:g-2") == 0
    installation.redis.delete("dragoman:job:g-3")
    again = installation("forget", "g-1", "--json")
    assert (again.returncode, json.loads(again.stdout)["status"]) == (0, "unknown")


def test_a_document_is_forgotten_with_its_progress_and_what_the_gateway_keeps(
    installation: Installation, lines: Lines
) -> None:
    document = {"document_id": "gone", "total": 2}
    jobs = [a_job(f"gone.{n}", document={**document, "index": n}) for n in range(2)]
    installation("submit", lines(*jobs), "--wait")
    installation.redis.set("dragoman:gateway:document:gone", "x")
    done = installation("forget", "--document", "gone")
    assert (done.returncode, done.stdout) == (0, "gone.0\tremoved\ngone.1\tremoved\n")
    assert list(installation.redis.scan_iter("*gone*")) == []


def test_approved_translations_of_a_text_are_forgotten(
    installation: Installation, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("en,de\nSave now,Jetzt speichern\nOpen now,Jetzt \u00f6ffnen\n", "utf-8")
    assert installation("memory", "import", str(rows)).returncode == 0
    text = tmp_path / "text"
    text.write_text("Save now\n")
    done = installation("forget", "--memory-text", str(text))
    assert done.stdout == "1 approved translation removed\n"
    assert installation("memory", "show", "--text", "Save now").returncode == 1
    assert installation("memory", "show", "--text", "Open now").returncode == 0
    assert installation("forget", "--memory-text", str(tmp_path / "none")).returncode == 2


def test_an_outage_of_redis_longer_than_the_connect_timeout_costs_no_result(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    name = kafka.create_topic(f"outage-{uuid.uuid4().hex[:8]}", 2)
    kafka.create_topic(f"{name}-dead", 2)
    texts = [f"Line {number}." for number in range(400)]
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    with RedisServer(appendonly="yes", appendfsync="always") as server:
        made = Installation(kafka, server, name, tmp_path)
        env = {**made.env, "DRAGOMAN_CONNECT_TIMEOUT_S": "1"}
        asked = command("dragoman", "submit", str(jobs), "--to", "de", "--wait")
        with (
            made.worker(engine__echo__latency_s=3.0),
            ChildProcess(asked, log=tmp_path / "submit", env=env, split_streams=True) as waiting,
        ):
            waiting.wait_for(
                lambda: made.redis.xlen("dragoman:events") > 0, timeout_s=60, what="a result"
            )
            server.kill()
            waiting.wait_for(lambda: "waiting for it" in waiting.errors, timeout_s=60, what="told")
            server.start()
            assert waiting.wait(timeout_s=120) == 0
            found = [line.partition("\t")[2] for line in waiting.output.splitlines()]
        made.redis.close()
    assert sorted(found) == sorted(f"[de] {text}" for text in texts)
