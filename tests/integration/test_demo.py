"""Integration tests of `dragoman-demo`: its output, its clean-up and its error messages."""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from dragoman_demo.samples import TARGETS, samples
from support.processes.child_process import ChildProcess, argv_of, command
from support.processes.waiting import wait_until

Demo = Callable[..., ChildProcess]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Provide a folder for temporary files; pytest's own paths are too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="demo-") as short:
        yield Path(short)


@pytest.fixture
def demo(folder: Path) -> Iterator[Demo]:
    """Provide a function that starts `dragoman-demo` with its temporary files in `folder`."""
    started: list[ChildProcess] = []

    def start(*arguments: str, **env: str) -> ChildProcess:
        process = ChildProcess(
            command("dragoman-demo", *arguments),
            log=folder / "demo",
            env={"TMPDIR": str(folder), **env},
            split_streams=True,
        )
        started.append(process.start())
        return process

    yield start
    for process in started:
        process.stop()


def _children(process: ChildProcess) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def _rows(process: ChildProcess) -> list[dict[str, object]]:
    return [json.loads(line) for line in process.output.splitlines()]


def _shared_memory(process: ChildProcess) -> set[str]:
    """Return the segments of shared memory that the demo's processes have mapped."""
    maps = "".join(
        Path(f"/proc/{each.pid}/maps").read_text(encoding="utf-8") for each in _children(process)
    )
    return set(re.findall(r"/dev/shm/psm_\w+", maps))  # noqa: S108  read from maps


def _nothing_left(children: list[psutil.Process], folder: Path) -> None:
    _gone, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    assert sorted(path.name for path in folder.iterdir()) == ["demo.err", "demo.out"]


def test_all_samples_go_through_kafka_worker_and_redis(demo: Demo, folder: Path) -> None:
    # Settings of a real deployment must not reach the demo.
    process = demo("--engine", "echo", "--json", DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1")
    children = wait_until(lambda: _children(process), timeout_s=90, what="children")
    assert process.wait(timeout_s=300) == 0, process.errors
    rows, files = _rows(process)[: len(samples())], _rows(process)[len(samples()) :]
    assert [row["source"] for row in rows] == [sample.text for sample in samples()]
    assert [(row["document"], row["target_lang"], row["status"]) for row in files] == [
        (document, lang, "done")
        for lang in sorted(TARGETS)
        for document in ("app.po", "film.srt", "trip.md")
    ]
    assert all(
        row["translation"] == f"[{row['target_lang']}] {row['source']}"
        and row["status"] == "completed"
        for row in rows
    )
    _nothing_left(children, folder)


def test_a_broker_that_dies_ends_the_demo(demo: Demo) -> None:
    process = demo("--engine", "echo")

    def brokers() -> list[psutil.Process]:
        own = _children(process) if process.running else []
        return [child for child in own if "dragoman_producer.box.broker" in argv_of(child)]

    process.wait_for(lambda: "Starting the engine" in process.errors, timeout_s=90, what="Redis")
    [broker] = brokers()
    children = _children(process)
    broker.kill()
    assert process.wait(timeout_s=60) == 1
    assert "the embedded broker died" in process.errors
    assert psutil.wait_procs(children, timeout=20)[1] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_interrupted_during_its_start_leaves_nothing(
    demo: Demo, folder: Path, number: signal.Signals
) -> None:
    process = demo("--engine", "echo")
    # Broker, Redis and worker; the latter two with a parent link process each.
    children = process.wait_for(
        lambda: found if len(found := _children(process)) >= 5 else [],
        timeout_s=30,
        what="all children",
    )
    process.send(number)
    assert process.wait(timeout_s=30) == 130, process.errors
    _nothing_left(children, folder)


@pytest.mark.timeout(1000)
def test_ctrl_c_while_it_translates_stops_the_demo_within_seconds(
    demo: Demo, folder: Path, demo_model: Path
) -> None:
    process = demo()
    children = wait_until(lambda: _children(process), timeout_s=90, what="children")
    process.wait_for(
        lambda: "✓ Starting the engine" in process.errors, timeout_s=800, what="the model"
    )
    shared = _shared_memory(process)
    process.send(signal.SIGINT)
    assert process.wait(timeout_s=30) == 130, process.errors
    _nothing_left(children, folder)
    assert shared, "vLLM has some"
    assert not [each for each in shared if Path(each).exists()]


def test_a_worker_that_cannot_start_is_reported_with_its_last_log_lines(
    demo: Demo, folder: Path
) -> None:
    broken = folder / "dragoman_worker"
    broken.mkdir()
    (broken / "__init__.py").write_text(
        "import pkgutil; __path__ = pkgutil.extend_path(__path__, __name__)"  # but its own __main__
    )
    (broken / "__main__.py").write_text("raise SystemExit('out of order')")
    process = demo("--engine", "echo", PYTHONPATH=str(folder))
    assert process.wait(timeout_s=60) == 1
    assert process.output == ""
    assert "the worker exited with status 1" in process.errors
    assert "out of order" in process.errors
    [log] = folder.glob("dragoman-*/worker.log")
    assert str(log) in process.errors


@pytest.mark.timeout(1000)
def test_the_demonstration_model_translates_every_sample(
    demo: Demo, folder: Path, demo_model: Path
) -> None:
    process = demo("--json")
    children = wait_until(lambda: _children(process), timeout_s=90, what="children")
    assert process.wait(timeout_s=800) == 0, process.errors
    rows, files = _rows(process)[: len(samples())], _rows(process)[len(samples()) :]
    assert [row["status"] for row in rows] == ["completed"] * len(samples())
    assert [row["status"] for row in files] == ["done"] * 12
    assert all(row["translation"] and row["translation"] != row["source"] for row in rows)
    into_english = {str(row["source"]): str(row["translation"]) for row in rows[4:8]}
    assert "book" in into_english["¿Cuánto cuesta este libro?"].lower()
    assert "station" in into_english["Où est la gare, s'il vous plaît ?"].lower()
    _nothing_left(children, folder)
