"""`dragoman translate` on a real Kafka, a real Redis and a worker with the echo engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.documents import line_format
from support.processes.child_process import ChildProcess, command
from support.processes.waiting import patient, wait_until
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

Topic = Callable[..., str]
FILES, LINES = 40, 50


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
        self.argv = command(
            "dragoman", "translate", str(self.source), "--to", "de", "--out", str(self.out)
        )

    def __call__(self, *more: str, status: int = 0) -> str:
        done = subprocess.run(
            [*self.argv, *more],
            env=self.env, capture_output=True, text=True, check=False, timeout=patient(120),
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert done.returncode == status, done.stderr
        return done.stderr

    def child(self, log: Path, *more: str) -> ChildProcess:
        return ChildProcess([*self.argv, *more], log=log, env=self.env, split_streams=True)

    @property
    def report(self) -> dict[str, Any]:
        found = json.loads((self.out / "report.json").read_text())
        assert isinstance(found, dict)
        return found

    @property
    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = self.report["targets"]["de"]
        return counts

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


def test_ctrl_c_keeps_what_is_there_and_the_next_run_goes_on(
    translate: Translating, start: Callable[..., ForkedWorker], tmp_path: Path
) -> None:
    worker = start(engine__echo__latency_s=0.2)
    with translate.child(tmp_path / "stopped", "--in-flight", "200") as child:
        wait_until(
            lambda: worker.metric("dragoman_items_total") >= FILES * LINES / 4,
            timeout_s=60, what="a quarter of the segments",
        )  # fmt: skip
        child.interrupt()
        assert child.wait(timeout_s=60) == 3
        assert "Traceback" not in child.errors
    found = {(each["status"], each["reason"]) for each in translate.report["documents"]}
    assert ("failed", "interrupted") in found
    translate()
    translate.check()
    assert worker.metric("dragoman_items_total") == FILES * LINES
    assert translate.counts["written"] == FILES
