"""`dragoman translate` on a real Kafka, a real Redis and a worker with the echo engine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman_documents.parts.source import PART_BYTES
from support.documents import line_format
from support.processes.child_process import ChildProcess, command
from support.processes.forked_command import run_forked
from support.processes.waiting import patient, wait_until
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.ports import free_ports
from support.services.redis_server import RedisServer

Topic = Callable[..., str]
FILES, LINES = 20, 50


class Translating:
    """Runs `dragoman translate` on a folder of FILES files of LINES lines, all different."""

    def __init__(self, folder: Path, bootstrap: str, redis_url: str, topic: str) -> None:
        self.source = folder / "in"
        self.source.mkdir()
        for file in range(FILES):
            lines = [f"Sentence {line} of file {file}." for line in range(LINES)]
            (self.source / f"{file:03}.lines").write_text("\n".join(lines))
        self.out = folder / "out"
        site = folder / "site"
        line_format.write_entry_points(site)
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).parents[1])]),
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
            "DRAGOMAN_KAFKA__TOPICS": json.dumps([topic]),
            "DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC": f"{topic}-dead",
            "DRAGOMAN_REDIS__URL": redis_url,
            "DRAGOMAN_CONNECT_TIMEOUT_S": "5",
        }
        self.arguments = ["translate", str(self.source), "--to", "de", "--out", str(self.out)]

    def __call__(self, *more: str, status: int = 0) -> str:
        return self.run(*self.arguments, *more, status=status).stderr

    def run(
        self, *arguments: str, stdin: bytes = b"", status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run `dragoman`."""
        done = run_forked("dragoman", *arguments, env=self.env, stdin=stdin, timeout_s=120)
        assert "Traceback" not in done.stderr
        assert done.returncode == status, done.stderr
        return done

    def limited(self, kilobytes: int, *, status: int) -> str:
        """Run the command on a disk that is full once a file has that size; return its errors."""
        limit = f'ulimit -f {2 * kilobytes}; exec "$@"'
        done = subprocess.run(
            ["sh", "-c", limit, "sh", *command("dragoman", *self.arguments)],
            env=self.env, capture_output=True, text=True, check=False, timeout=patient(120),
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert done.returncode == status, done.stderr
        return done.stderr

    def child(self, log: Path, *more: str) -> ChildProcess:
        argv = command("dragoman", *self.arguments, *more)
        return ChildProcess(argv, log=log, env=self.env, split_streams=True)

    @property
    def report(self) -> dict[str, Any]:
        found = json.loads((self.out / "report.json").read_text())
        assert isinstance(found, dict)
        return found

    @property
    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = self.report["targets"]["de"]
        return counts

    def check_written(self, name: str, content: str) -> None:
        assert (self.out / "de" / name).read_text() == content

    def check(self) -> None:
        for path in self.source.iterdir():
            wanted = [f"[de] {line}" for line in path.read_text().split("\n")]
            assert (self.out / "de" / path.name).read_text() == "\n".join(wanted)


@pytest.fixture
def worker_topic(kafka: KafkaBroker, topic: Topic) -> str:
    name = topic()
    kafka.create_topic(f"{name}-dead", 1)
    return name


@pytest.fixture
def start(
    kafka: KafkaBroker, redis_server: RedisServer, worker_topic: str, tmp_path: Path
) -> Iterator[Callable[..., ForkedWorker]]:
    started: list[ForkedWorker] = []

    def make(**settings: Any) -> ForkedWorker:
        worker = ForkedWorker(
            tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=worker_topic,
            settings={name.replace("__", "."): value for name, value in settings.items()},
        )  # fmt: skip
        started.append(worker)
        worker.start()
        return worker.ready()

    yield make
    for worker in started:
        worker.stop()


@pytest.fixture
def translate(
    kafka: KafkaBroker, redis_server: RedisServer, worker_topic: str, tmp_path: Path
) -> Translating:
    return Translating(tmp_path, kafka.bootstrap, redis_server.url, worker_topic)


def test_a_folder_is_translated_and_the_second_run_costs_nothing(
    translate: Translating, start: Callable[..., ForkedWorker]
) -> None:
    worker = start()
    translate()
    translate.check()
    items = worker.metric("dragoman_items_total")
    assert items == FILES * LINES
    translate()
    assert worker.metric("dragoman_items_total") == items
    assert {each["status"] for each in translate.report["documents"]} == {"unchanged"}
    changed = translate.source / "007.lines"
    changed.write_text(changed.read_text().replace("Sentence 3 ", "Another sentence 3 "))
    translate()
    translate.check()
    assert worker.metric("dragoman_items_total") == items + 1


def test_review_writes_the_page_of_a_translated_folder(
    translate: Translating, start: Callable[..., ForkedWorker]
) -> None:
    start()
    translate()
    page = translate.run("review", str(translate.out)).stdout.split("\n")[0]
    assert "[de] Sentence 3 of file 7." in Path(page).read_text()


def test_tmx_of_a_review_is_imported_into_the_memory(
    translate: Translating, start: Callable[..., ForkedWorker]
) -> None:
    start()
    translate("--from", "en")
    file = translate.out / "work.tmx"
    translate.run("review", str(translate.out), "--export", str(file))
    ended = translate.run("memory", "import", str(file))
    assert ended.stdout.startswith(f"{FILES * LINES:,} new\t0 replaced")


def test_after_kill_9_at_half_no_segment_is_paid_twice(
    translate: Translating, start: Callable[..., ForkedWorker], tmp_path: Path
) -> None:
    worker = start(engine__echo__latency_s=0.2)
    with translate.child(tmp_path / "killed", "--in-flight", "200") as child:
        wait_until(
            lambda: worker.metric("dragoman_items_total") >= FILES * LINES / 2,
            timeout_s=60, what="half of the segments",
        )  # fmt: skip
        os.kill(child.pid, signal.SIGKILL)
    translate()
    translate.check()
    assert worker.metric("dragoman_items_total") == FILES * LINES


def test_after_kill_9_inside_a_file_in_parts_the_output_is_whole(
    translate: Translating, start: Callable[..., ForkedWorker], tmp_path: Path
) -> None:
    worker = start(engine__echo__latency_s=0.5)
    count, pad = 400, "x" * 43_000
    rows = (f'{{"text": "Sentence {n}.", "pad": "{pad}"}}\n' for n in range(count))
    source = tmp_path / "large.jsonl"
    source.write_text("".join(rows))
    assert source.stat().st_size > PART_BYTES
    given = ["translate", str(source), "--to", "de", "--field", "text", "--out"]
    translate.arguments = [*given, str(tmp_path / "killed")]
    with translate.child(tmp_path / "log", "--in-flight", "64") as child:
        wait_until(
            lambda: worker.metric("dragoman_items_total") > 0,
            timeout_s=60, what="a result",
        )  # fmt: skip
        os.kill(child.pid, signal.SIGKILL)
    translate()
    assert worker.metric("dragoman_items_total") == count
    output = (tmp_path / "killed" / "de" / "large.jsonl").read_bytes()
    assert output == source.read_bytes().replace(b'"Sentence', b'"[de] Sentence')


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_keep_what_is_there_and_the_next_run_goes_on(
    translate: Translating, start: Callable[..., ForkedWorker], tmp_path: Path, sent: signal.Signals
) -> None:
    worker = start(engine__echo__latency_s=0.2)
    with translate.child(tmp_path / "stopped", "--in-flight", "200") as child:
        wait_until(
            lambda: worker.metric("dragoman_items_total") >= FILES * LINES / 4,
            timeout_s=60, what="a quarter of the segments",
        )  # fmt: skip
        child.send(sent)
        assert child.wait(timeout_s=60) == 3
        assert "Traceback" not in child.errors
    found = {(each["status"], each["reason"]) for each in translate.report["documents"]}
    assert ("failed", "interrupted") in found
    translate()
    translate.check()
    assert worker.metric("dragoman_items_total") == FILES * LINES
    assert translate.counts["written"] == FILES


def test_stdin_is_translated_to_stdout(
    translate: Translating, start: Callable[..., ForkedWorker]
) -> None:
    start()
    arguments = ("translate", "-", "--format", "lines", "--to", "de")
    done = translate.run(*arguments, stdin=b"One.\n# two\nThree.\n")
    assert done.stdout == "[de] One.\n# two\n[de] Three.\n"
    assert not translate.out.exists()


def test_the_folder_watcher_of_the_how_to_translates_new_and_changed_files(
    translate: Translating, start: Callable[..., ForkedWorker], tmp_path: Path
) -> None:
    start()
    page = Path(__file__).parents[2] / "docs" / "how-to" / "translate-documents.md"
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    [program] = [block for block in found if "INBOX" in block]
    inbox, out = tmp_path / "inbox", tmp_path / "translated"
    inbox.mkdir()
    (inbox / "a.lines").write_text("One.")
    program = program.replace('"inbox"', repr(str(inbox))).replace('"translated"', repr(str(out)))

    def holds(name: str, content: str) -> bool:
        path = out / "de" / name
        return path.exists() and path.read_text() == content

    argv = [sys.executable, "-c", program]
    log = tmp_path / "watcher"
    with ChildProcess(argv, log=log, env=translate.env, split_streams=True) as child:
        child.wait_for(lambda: holds("a.lines", "[de] One."), timeout_s=120, what="the first file")
        (inbox / "b.lines").write_text("Two.")
        (inbox / "a.lines").write_text("Another.")
        child.wait_for(lambda: holds("b.lines", "[de] Two."), timeout_s=120, what="a new file")
        child.wait_for(lambda: holds("a.lines", "[de] Another."), timeout_s=120, what="a change")


def test_a_stored_glossary_that_changed_translates_anew_and_an_unknown_one_writes_nothing(
    translate: Translating, start: Callable[..., ForkedWorker], tmp_path: Path
) -> None:
    assert "no glossary of this name is stored" in translate("--glossary", "terms", status=2)
    assert not translate.out.exists()
    worker = start()
    terms = tmp_path / "terms.tsv"
    for version, source in enumerate(("Sentence", "file"), start=1):
        terms.write_text(f"{source}\tWort\n")
        translate.run("glossary", "add", "terms", str(terms), "--to", "de")
        for _ in range(2):
            translate("--glossary", "terms")
        assert worker.metric("dragoman_items_total") == version * FILES * LINES


@contextmanager
def running(
    tmp_path: Path, kafka: KafkaBroker, server: RedisServer
) -> Iterator[tuple[Translating, ForkedWorker]]:
    """Give a command and a worker on services of the test's own."""
    topic = kafka.create_topic(f"documents-{tmp_path.name}"[:60], 1)
    kafka.create_topic(f"{topic}-dead", 1)
    translate = Translating(tmp_path, kafka.bootstrap, server.url, topic)
    worker = ForkedWorker(
        tmp_path, kafka=kafka.bootstrap, redis=server.url, topic=topic,
        settings={"engine.echo.latency_s": 0.2},
    )  # fmt: skip
    with worker:
        worker.ready()
        yield translate, worker


def outlasts(
    services: tuple[KafkaBroker, RedisServer],
    tmp_path: Path,
    outage: str,
    stop: Callable[[], object],
    start: Callable[[], object],
) -> None:
    """Stop a service in the middle of a run, and start it when the run has noticed."""
    with running(tmp_path, *services) as (translate, worker):
        with translate.child(tmp_path / "log", "--in-flight", "200") as child:
            worker.wait_for(
                lambda: worker.metric("dragoman_items_total") >= 200, timeout_s=60, what="results"
            )
            stop()
            child.wait_for(
                lambda: f"waiting: {outage}" in child.errors, timeout_s=60, what="a note"
            )
            start()
            assert child.wait(timeout_s=120) == 0, child.errors
        translate.check()


def test_a_redis_that_goes_away_in_the_middle_is_waited_for(
    kafka: KafkaBroker, own_redis: RedisServer, tmp_path: Path
) -> None:
    services = (kafka, own_redis)
    outlasts(services, tmp_path, "Redis", stop=own_redis.stop, start=own_redis.start)


def test_a_broker_that_goes_away_in_the_middle_is_waited_for(
    own_kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    services = (own_kafka, redis_server)
    outlasts(services, tmp_path, "Can't reach Kafka", stop=own_kafka.kill, start=own_kafka.restart)


def test_a_wrong_address_fails_within_the_time_to_connect(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    translate = Translating(tmp_path, f"127.0.0.1:{port}", f"redis://127.0.0.1:{port}", "none")
    errors = translate("--to", "fr", status=1)
    assert "could not be reached within 5 s" in errors
    assert {each["reason"] for each in translate.report["documents"]} == {"interrupted"}


def test_a_document_that_does_not_fit_on_the_disk_is_one_line_and_the_others_are_written(
    translate: Translating, start: Callable[..., ForkedWorker]
) -> None:
    start()
    markup = "# " + "x" * 998 + "\n"
    (translate.source / "large.lines").write_text(markup * 3_000 + "Text.")
    errors = translate.limited(2_000, status=3)
    [line] = [each for each in errors.splitlines() if each.startswith("large.lines [de]: ")]
    assert "(no_space)" in line
    assert "out/de/large.lines" in line
    assert not (translate.out / "de/large.lines").exists()
    assert translate.counts["written"] == FILES
    translate()
    translate.check_written("large.lines", markup * 3_000 + "[de] Text.")


def test_a_disk_too_small_for_the_manifest_ends_the_run_in_one_line(
    translate: Translating,
) -> None:
    errors = translate.limited(50, status=1)
    assert len(errors.splitlines()) == 1
    assert "the disk is full" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "xx-nonsense"], "--to: 'xx-nonsense' is not a language"),
        (["--from", "?"], "--from: '?' is not a language"),
        (["--layout", "flat"], "--layout: 'flat' is not valid; choose folders or suffix"),
        (["--format", "pdf"], "--format: 'pdf' is not valid"),
        (["--on-fail", "x"], "--on-fail"),
        (["--formality", "x"], "--formality"),
        (["--keep", "none.txt"], "--keep none.txt"),
        (["--in-flight", "0"], "--in-flight"),
    ],
)
def test_a_usage_error_exits_with_2_and_one_line_that_names_the_option(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = ("translate", str(tmp_path), "--to", "de", "--out", str(tmp_path / "o"))
    done = run_forked("dragoman", *given, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
