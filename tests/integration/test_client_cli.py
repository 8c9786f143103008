"""Integration tests of the commands by contract section 7, as processes on real services.

A played worker writes to Redis as the contract says; nothing is translated.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman_schemas.wire import open_record
from support.fakes.played_worker import PlayedWorker, Record, records
from support.processes.child_process import ChildProcess, command
from support.processes.forked_command import run_forked
from support.services.kafka_broker import KafkaBroker
from support.services.ports import free_ports
from support.services.redis_server import RedisServer

Topic = Callable[..., str]


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines]


class Shell:
    """Runs `dragoman` with one topic and one Redis."""

    def __init__(self, bootstrap: str, redis_url: str, topic: str, dead_letters: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.env = {
            **os.environ,
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
            "DRAGOMAN_KAFKA__TOPICS": json.dumps([topic]),
            "DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC": dead_letters,
            "DRAGOMAN_REDIS__URL": redis_url,
            "DRAGOMAN_CONNECT_TIMEOUT_S": "5",
        }

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ended:
        done = run_forked("dragoman", *arguments, env=self.env, stdin=stdin)
        ended = Ended(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in ended.err
        return ended

    def records(self, count: int) -> list[Record]:
        return records(self.bootstrap, self.topic, count)

    def jobs(self, count: int) -> list[dict[str, object]]:
        return [json.loads(record.value or b"") for record in self.records(count)]


@pytest.fixture
def dragoman(kafka: KafkaBroker, redis_server: RedisServer, topic: Topic) -> Shell:
    return Shell(kafka.bootstrap, redis_server.url, topic(), topic())


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[PlayedWorker]:
    played = PlayedWorker(redis_server.url)
    yield played
    played.close()


# --- submit -------------------------------------------------------------------------------------


def test_a_text_becomes_one_job_and_prints_its_id(dragoman: Shell) -> None:
    ended = dragoman("submit", "--to", "pt_br", "--from", "en", "--id", "a1", "Hello.")
    assert (ended.status, ended.out, ended.err) == (0, "a1\n", "")
    assert dragoman.jobs(1) == [
        {"job_id": "a1", "target_lang": "pt-BR", "source_lang": "en", "text": "Hello."}
    ]


def test_an_id_is_generated_if_none_is_given(dragoman: Shell) -> None:
    first = dragoman("submit", "--to", "de", "Hello.", "--json")
    second = dragoman("submit", "--to", "de", "Hello.", "--json")
    assert first.objects[0]["status"] == "queued"
    assert first.objects[0]["job_id"] != second.objects[0]["job_id"]


def test_stdin_is_one_text_without_its_last_newline(dragoman: Shell) -> None:
    ended = dragoman("submit", "--to", "de", "-", stdin="Grüße.\n\nZwei Absätze.\n".encode())
    assert ended.status == 0
    assert dragoman.jobs(1)[0]["text"] == "Grüße.\n\nZwei Absätze."


def test_lines_of_stdin_are_items_in_jobs_of_512_that_form_a_document(dragoman: Shell) -> None:
    text = "".join(f"Line {number}.\n" for number in range(600)).encode()
    ended = dragoman("submit", "--to", "de", "--lines", "--id", "book", "-", stdin=text)
    assert (ended.status, ended.lines) == (0, ["book.0", "book.1"])
    first, second = sorted(dragoman.jobs(2), key=lambda job: str(job["job_id"]))
    assert first["document"] == {"document_id": "book", "index": 0, "total": 2}
    assert second["document"] == {"document_id": "book", "index": 1, "total": 2}
    assert [*first["text"], *second["text"]] == [f"Line {n}." for n in range(600)]  # type: ignore[misc]


def test_a_line_too_long_for_a_job_is_reported_and_the_others_are_published(
    dragoman: Shell,
) -> None:
    text = b"Short.\n" + b"x" * 140_000 + b"\nAlso short.\n"
    ended = dragoman("submit", "--to", "de", "--lines", "-", stdin=text)
    assert ended.status == 3
    assert ended.err == "stdin:2: is 140,000 bytes, at most 131,072 are allowed\n"
    assert dragoman.jobs(1)[0]["text"] == ["Short.", "Also short."]


def test_the_lines_of_a_file_are_jobs_and_invalid_ones_are_reported_by_line(
    dragoman: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(
        b'{"job_id": "j-1", "text": "One."}\n'
        b'{"job_id": "j-2", "text": "Two.", "target_lang": "fr"}\n'
        b"{not json}\n"
        b"\n"
        b'{"job_id": "j-5", "text": "Five.", "txet": "?"}\n'
        b'{"job_id": "j 6", "text": "Six."}\n'
        b"\xff\xfe\n"
        b'{"text": "Eight."}\n'
    )
    ended = dragoman("submit", "--to", "de", str(path))
    assert ended.status == 3
    assert ended.lines[:2] == ["j-1", "j-2"]
    assert len(ended.lines) == 3
    reported = ended.err.splitlines()
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in reported] == [
        "3",
        "5",
        "6",
        "7",
    ]
    assert "txet" in reported[1]
    assert "job_id" in reported[2]
    languages = {str(job["text"]): job["target_lang"] for job in dragoman.jobs(3)}
    assert languages == {"One.": "de", "Two.": "fr", "Eight.": "de"}


def test_a_file_without_a_valid_line_fails(dragoman: Shell, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"text": "No target."}\n')
    ended = dragoman("submit", str(path))
    assert (ended.status, ended.out) == (1, "")
    assert "target_lang: is required" in ended.err


def test_resubmitting_a_completed_job_publishes_nothing_and_fails(
    dragoman: Shell, worker: PlayedWorker
) -> None:
    dragoman("submit", "--to", "de", "--id", "done", "Hello.")
    (record,) = dragoman.records(1)
    worker.finish("done", open_record(record.value).fingerprint, "Hallo.")
    ended = dragoman("submit", "--to", "de", "--id", "done", "--resubmit", "Hello.")
    assert (ended.status, ended.out) == (1, "")
    assert "already completed" in ended.err
    assert len(dragoman.records(1)) == 1


def test_resubmitting_a_failed_job_publishes_a_replay(
    dragoman: Shell, worker: PlayedWorker
) -> None:
    dragoman("submit", "--to", "de", "--id", "bad", "Hello.")
    (record,) = dragoman.records(1)
    worker.finish("bad", open_record(record.value).fingerprint, None, status="failed")
    ended = dragoman("submit", "--to", "de", "--id", "bad", "--resubmit", "Hello.")
    assert (ended.status, ended.out) == (0, "bad\n")
    assert dragoman.records(2)[1].headers == {"dragoman-replay": b"1"}


def test_a_job_cancelled_before_is_reported_and_not_changed(dragoman: Shell) -> None:
    dragoman("cancel", "over")
    job = ["--to", "de", "--id", "over", "Hello.", "--json"]
    ended = dragoman("submit", *job)
    assert (ended.status, ended.objects) == (0, [{"job_id": "over", "status": "cancelled"}])
    assert "over (cancelled)" in ended.err
    assert "--resubmit" in ended.err
    again = dragoman("submit", *job, "--resubmit")
    assert (again.objects, again.err) == ([{"job_id": "over", "status": "queued"}], "")


def test_submit_and_wait_prints_ids_and_translations_as_they_end(
    dragoman: Shell, worker: PlayedWorker, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text("".join(f'{{"job_id": "w-{n}", "text": "T{n}."}}\n' for n in range(5)))
    argv = command("dragoman", "submit", "--to", "de", "--wait", str(path))
    with ChildProcess(argv, log=tmp_path / "log", env=dragoman.env, split_streams=True) as child:
        published = dragoman.records(5)
        for record in reversed(published):
            envelope = open_record(record.value)
            number = envelope.job_id.removeprefix("w-")
            worker.finish(envelope.job_id, envelope.fingerprint, f"Ü\n{number}.")
        assert child.wait(timeout_s=20) == 0
        assert set(child.output.splitlines()) == {f"w-{n}\tÜ\\n{n}." for n in range(5)}
        assert "5 jobs published" in child.errors
        assert "5 translated" in child.errors


def test_interrupting_a_submission_exits_with_130_and_prints_the_count(
    dragoman: Shell, worker: PlayedWorker, tmp_path: Path
) -> None:
    argv = command("dragoman", "submit", "--to", "de", "--id", "held", "--wait", "Hello.")
    with ChildProcess(argv, log=tmp_path / "log", env=dragoman.env, split_streams=True) as child:
        assert len(dragoman.records(1)) == 1
        # It counts a job that Kafka has acknowledged; it waits for results after that.
        child.wait_for(
            lambda: any(each["cmd"] == "xread" for each in worker.redis.client_list()),
            timeout_s=20,
            what="a wait for the result",
        )
        child.interrupt()
        assert child.wait(timeout_s=20) == 128 + signal.SIGINT
        assert "published so far: 1" in child.errors
        assert len(child.errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "Hello."], "--to is missing"),
        (["submit", "--to", "xx-nonsense", "Hello."], "--to: 'xx-nonsense' is not a language"),
        (["submit", "--to", "de", "--from", "?", "Hello."], "--from: '?' is not a language"),
        (["submit", "--to", "de", "--id", "a b", "Hello."], "--id: must be 1-128 of"),
        (["submit", "--to", "de", "no-such.jsonl"], "no-such.jsonl: No such file"),
        (["submit", "--to", "de", "-"], "stdin is empty"),
        (["submit", "--to", "de", os.fsdecode(b"a\xff")], "TEXT is not UTF-8"),
        (["submit", "--to", os.fsdecode(b"a\xff"), "a"], "--to is not UTF-8"),
        (["submit", "--to", "de", "--id", os.fsdecode(b"a\xff"), "a"], "--id is not UTF-8"),
        (["result", os.fsdecode(b"a\xff")], "is not a job id"),
        (["result", "a", "--redis", os.fsdecode(b"redis://a\xff")], "--redis is not UTF-8"),
        (["topics", "show", "--kafka", os.fsdecode(b"a\xff:1")], "--kafka is not UTF-8"),
        (["submit", "--to", "de", "--id", "a1", "x.jsonl"], "--id is for one text"),
        (["submit", "--to", "de", "--colour", "x"], "--colour"),
        (["submit", "--to", "de", "--redis", "http://x", "x"], "redis.url: give redis://"),
        (["submit", "--to", "de", "--config", "none.toml", "x"], "--config none.toml"),
        (["result"], "ID..."),
        (["result", "a", "--wait", "--timeout", "-1"], "--timeout"),
        (["status", "a", "--timeout", "1"], "--timeout needs --wait"),
        (["submit", "--to", "de", "--timeout", "1", "x"], "--timeout needs --wait"),
        (["submit", "--to", "de", "products.csv"], "looks like a file name"),
        (["submit", "--to", "de,xx-nonsense", "Hello."], "--to: 'xx-nonsense' is not a language"),
        (["submit", "--to", "de", "--ttl", "5", "Hello."], "--ttl: is 5, must be at least 60"),
        (["submit", "--to", "de", "--deadline", "soon", "Hello."], "--deadline: must be an RFC"),
        (["cancel"], "either ID... or --document"),
        (["topics", "create", "--partitions", "0"], "--partitions"),
    ],
)
def test_a_usage_error_exits_with_2_and_one_line_that_names_the_option(
    arguments: list[str], message: str
) -> None:
    done = run_forked("dragoman", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- result, status, cancel ---------------------------------------------------------------------


def test_result_prints_exactly_the_text_of_a_job_of_one_item(
    dragoman: Shell, worker: PlayedWorker
) -> None:
    worker.finish("r-1", "f" * 64, "Zwei Zeilen,\neine Übersetzung.")
    ended = dragoman("result", "r-1")
    assert (ended.status, ended.out) == (0, "Zwei Zeilen,\neine Übersetzung.\n")


def test_check_prints_verdicts_instead_of_texts_and_a_summary(
    dragoman: Shell, worker: PlayedWorker
) -> None:
    worker.finish("c-1", "f" * 64, "Eins.")
    worker.finish("c-2", "f" * 64, None, status="failed")
    ended = dragoman("result", "--check", "c-1", "c-2")
    assert ended.status == 1
    assert "Eins." not in ended.out
    assert ended.lines[0].startswith("c-1 completed: 1 item: 1 ")
    assert ended.lines[-1].startswith("2 jobs, 2 items: ")
    assert "job c-2: failed" in ended.err


def test_results_of_many_ids_come_in_the_order_of_the_arguments(
    dragoman: Shell, worker: PlayedWorker
) -> None:
    worker.finish("r-2", "f" * 64, "Eins.", "Zwei.")
    worker.claim("r-3", "f" * 64)
    worker.finish("r-4", "f" * 64, None, status="failed")
    ended = dragoman("result", "--json", "r-4", "none", "r-3", "r-2")
    assert ended.status == 3
    assert [(found["job_id"], found["status"]) for found in ended.objects] == [
        ("r-4", "failed"),
        ("none", "unknown"),
        ("r-3", "running"),
        ("r-2", "completed"),
    ]
    plain = dragoman("result", "r-4", "none", "r-3", "r-2")
    assert (plain.status, plain.lines) == (3, ["Eins.", "Zwei."])
    assert len(plain.err.splitlines()) == 3


def test_a_failed_job_exits_with_1_and_the_reason(dragoman: Shell, worker: PlayedWorker) -> None:
    worker.finish("r-5", "f" * 64, None, status="failed")
    ended = dragoman("result", "r-5")
    assert (ended.status, ended.out) == (1, "")
    assert "engine_failed" in ended.err


def test_result_waits_at_most_the_given_time(dragoman: Shell, worker: PlayedWorker) -> None:
    worker.claim("r-6", "f" * 64)
    began = time.monotonic()
    ended = dragoman("result", "--wait", "--timeout", "1", "r-6")
    assert time.monotonic() - began >= 1
    assert ended.status == 3
    assert "running" in ended.err


def test_status_prints_each_id_in_order(dragoman: Shell, worker: PlayedWorker) -> None:
    dragoman("submit", "--to", "de", "--id", "s-1", "Hello.")
    worker.claim("s-2", "f" * 64)
    ended = dragoman("status", "s-2", "none", "s-1")
    assert (ended.status, ended.lines) == (3, ["s-2\trunning", "none\tunknown", "s-1\tqueued"])
    assert dragoman("status", "s-2", "s-1").status == 0
    assert dragoman("status", "--json", "none").objects == [{"job_id": "none", "status": "unknown"}]


def test_cancel_cancels_queued_jobs_and_reports_terminal_ones(
    dragoman: Shell, worker: PlayedWorker
) -> None:
    dragoman("submit", "--to", "de", "--id", "c-1", "Hello.")
    worker.claim("c-2", "f" * 64)
    assert dragoman("cancel", "c-1", "c-2").lines == ["c-1\tcancelled", "c-2\trunning"]
    unknown = dragoman("cancel", "c-1", "c-4")
    assert (unknown.status, unknown.lines) == (0, ["c-1\tcancelled", "c-4\tcancelled"])
    assert [line.split()[1] for line in unknown.err.splitlines()] == ["c-4"]
    assert "c-4 is unknown" in unknown.err
    worker.finish("c-3", "f" * 64, "Hallo.")
    late = dragoman("cancel", "c-3", "--json")
    assert (late.status, late.objects) == (3, [{"job_id": "c-3", "status": "completed"}])
    assert dragoman("result", "c-1").status == 1


def test_cancelling_a_document_writes_its_key(dragoman: Shell, worker: PlayedWorker) -> None:
    ended = dragoman("cancel", "--document", "book")
    assert (ended.status, ended.out) == (0, "book\tcancelled\n")
    assert worker.redis.exists("dragoman:document:book:cancel") == 1


# --- topics -------------------------------------------------------------------------------------


def test_topics_are_created_once_and_too_small_ones_are_reported(
    kafka: KafkaBroker, topic: Topic
) -> None:
    small, new = topic(partitions=2), f"{topic()}-dead-letters"
    config = {"DRAGOMAN_KAFKA__TOPICS": json.dumps([small])}
    shell = Shell(kafka.bootstrap, "redis://127.0.0.1:1", small, new)
    shell.env |= config

    first = shell("topics", "create", "--partitions", "4", "--json")
    assert first.status == 3
    assert first.objects == [
        {"topic": small, "created": False, "partitions": 2},
        {"topic": new, "created": True, "partitions": 4},
    ]
    assert f"topic {small} has 2 partitions, not 4" in first.err
    second = shell("topics", "create", "--partitions", "2")
    assert (second.status, second.lines) == (0, [f"{small}\texists\t2", f"{new}\texists\t4"])


def test_topics_show_prints_offsets_and_lag(dragoman: Shell) -> None:
    dragoman("submit", "--to", "de", "Hello.")
    ended = dragoman("topics", "show", "--json")
    assert ended.status == 0
    jobs = next(found for found in ended.objects if found["topic"] == dragoman.topic)
    assert (jobs["first_offset"], jobs["next_offset"], jobs["committed"], jobs["lag"]) == (
        0,
        1,
        None,
        1,
    )
    shown = dragoman("topics", "show")
    assert dragoman.topic in shown.out
    assert "1 job left, " in shown.err


def test_topics_show_watches_the_lag(dragoman: Shell, tmp_path: Path) -> None:
    dragoman("submit", "--to", "de", "Hello.")
    argv = command("dragoman", "topics", "show", "--watch", "--json")
    with ChildProcess(argv, log=tmp_path / "log", env=dragoman.env, split_streams=True) as child:
        child.wait_for(lambda: child.output.count("\n") >= 2, timeout_s=40, what="two looks")
        child.interrupt()
        assert child.wait(timeout_s=20) == 128 + signal.SIGINT
    first, second = map(json.loads, child.output.splitlines()[:2])
    assert first == {"lag": 1, "jobs_per_s": None, "eta_s": None}
    assert second == {"lag": 1, "jobs_per_s": 0.0, "eta_s": None}


def test_topics_show_fails_where_there_are_none(kafka: KafkaBroker) -> None:
    ended = Shell(kafka.bootstrap, "redis://127.0.0.1:1", "no-jobs", "no-dead-letters")(
        "topics", "show"
    )
    assert (ended.status, ended.out) == (1, "")
    assert "dragoman topics create" in ended.err


# --- unreachable --------------------------------------------------------------------------------


@pytest.mark.parametrize("stdin_id", ["u-1"])
def test_a_missing_broker_exits_with_1_in_time_and_one_line(
    redis_server: RedisServer, stdin_id: str
) -> None:
    (port,) = free_ports(1)
    shell = Shell(f"127.0.0.1:{port}", redis_server.url, "jobs", "dead-letters")
    shell.env["DRAGOMAN_CONNECT_TIMEOUT_S"] = "1"
    ended = shell("submit", "--to", "de", "--id", stdin_id, "Hello.")
    assert (ended.status, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == 1
    assert f"Can't reach Kafka at 127.0.0.1:{port} within 1 s" in ended.err


def test_a_missing_redis_exits_with_1_in_time_and_one_line() -> None:
    (port,) = free_ports(1)
    shell = Shell("127.0.0.1:1", f"redis://user:secret@127.0.0.1:{port}/0", "jobs", "dead-letters")
    shell.env["DRAGOMAN_CONNECT_TIMEOUT_S"] = "1"
    ended = shell("result", "--wait", "--timeout", "60", "a1")
    assert (ended.status, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == 1
    assert f"Redis at 127.0.0.1:{port} could not be reached within 1 s" in ended.err
    assert "secret" not in ended.err


def test_results_are_read_without_a_broker(redis_server: RedisServer, worker: PlayedWorker) -> None:
    worker.finish("solo", "f" * 64, "Allein.")
    assert Shell("127.0.0.1:1", redis_server.url, "jobs", "dead-letters")(
        "result", "solo"
    ).lines == ["Allein."]


# --- foreign programs ---------------------------------------------------------------------------


def test_kcat_can_submit_and_redis_cli_can_read(
    dragoman: Shell, redis_server: RedisServer, worker: PlayedWorker
) -> None:
    value = b'{"job_id": "kc-1", "text": "Hello.", "target_lang": "de"}'
    kcat = ["kcat", "-P", "-b", dragoman.bootstrap, "-t", dragoman.topic, "-k", "kc-1"]
    subprocess.run(kcat, input=value, check=True, timeout=30)
    (record,) = dragoman.records(1)
    assert (record.key, record.value) == (b"kc-1", value)
    fingerprint = open_record(record.value).fingerprint
    answer = worker.claim("kc-1", fingerprint)
    worker.finish("kc-1", fingerprint, "Hallo.", replays=answer.replays)

    poll = ["HMGET", "dragoman:job:kc-1", "status", "result", "replays"]
    read = subprocess.run(
        ["redis-cli", "-p", str(redis_server.port), *poll],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    status, result, replays = read.stdout.splitlines()
    assert (status, replays) == ("completed", "0")
    assert json.loads(result)["translations"][0]["text"] == "Hallo."
