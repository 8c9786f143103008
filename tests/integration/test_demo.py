"""Integration tests of `dragoman-demo`: its output, its clean-up and its error messages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from dragoman_demo.samples import TARGETS, samples
from dragoman_producer import TranslationClient, TranslationJob
from support.processes.child_process import ChildProcess, argv_of, command
from support.processes.forked_command import run_forked
from support.processes.installation import a_job
from support.processes.waiting import wait_until
from support.services.plain_clients import publish

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


def test_the_printed_commands_work_unchanged_and_a_dead_worker_stops_the_demo(demo: Demo) -> None:
    process = demo("serve", "--engine", "echo")
    process.wait_for(lambda: "Ctrl-C" in process.errors, timeout_s=300, what="the commands")
    lines = [line.strip() for line in process.errors.splitlines() if line.startswith("  ")]
    done = subprocess.run(
        ["bash", "-euc", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    job_id, translation, status, *audit_and_why = done.stdout.splitlines()
    assert (job_id, translation) == ("hello", "[de] Good morning!")
    assert json.loads(status)["status"] == "completed"
    assert any("balances" in line for line in audit_and_why)
    assert any(line.startswith("To change:") for line in audit_and_why)
    children = _children(process)
    [worker] = [child for child in children if argv_of(child)[1:3] == ["-m", "dragoman_worker"]]
    worker.kill()
    assert process.wait(timeout_s=30) == 1
    assert "the worker exited with status 137" in process.errors
    assert psutil.wait_procs(children, timeout=20)[1] == []


def test_every_operation_works_on_the_embedded_broker_until_ctrl_c(
    demo: Demo, folder: Path
) -> None:
    process = demo("serve", "--engine", "echo", "--json")
    process.wait_for(lambda: "\n" in process.output, timeout_s=300, what="the addresses")
    addresses = json.loads(process.output)
    env = {
        **os.environ,
        "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": addresses["bootstrap_servers"],
        "DRAGOMAN_REDIS__URL": addresses["redis_url"],
    }

    def dragoman(*arguments: str, **more: str) -> tuple[int, str, str]:
        done = run_forked("dragoman", *arguments, env={**env, **more})
        return done.returncode, done.stdout, done.stderr

    assert asyncio.run(_translated(addresses)) == "[de] Hello."
    status, made, errors = dragoman("topics", "create")
    assert (status, errors) == (0, "")
    assert made == "dragoman.jobs\texists\t12\ndragoman.dead-letters\texists\t12\n"
    # Another payload under the same id is a conflict, which becomes a dead letter.
    jobs = [a_job("one", text) for text in ("Hello.", "Goodbye.")]
    publish(addresses["bootstrap_servers"], "dragoman.jobs", jobs)
    assert dragoman("result", "one", "--wait", "--timeout", "30")[1] == "[de] Hello.\n"
    wait_until(
        lambda: dragoman("dead-letters", "list", "--json")[1], timeout_s=30, what="a dead letter"
    )
    status, shown, errors = dragoman("topics", "show", "--json")
    partitions = [json.loads(line) for line in shown.splitlines()]
    assert (status, errors, len(partitions)) == (0, "", 24)
    status, dead_letter, errors = dragoman("dead-letters", "show", "one", "--json")
    assert (status, errors, json.loads(dead_letter)["code"]) == (0, "", "conflict")
    status, replayed, errors = dragoman("dead-letters", "replay", "--all")
    assert (status, replayed.split("\t")[2:]) == (1, ["skipped", "conflict\n"])
    status, audited, errors = dragoman("audit", "--json")
    assert (status, errors, json.loads(audited)["conflict"]) == (0, "", 1)
    status, _, errors = dragoman("topics", "create", DRAGOMAN_KAFKA__TOPICS="elsewhere")
    assert (status, errors.count("\n")) == (1, 1)
    assert "cannot be created" in errors
    children = _children(process)
    assert len(children) >= 5
    process.interrupt()
    assert process.wait(timeout_s=30) == 0, process.errors
    _nothing_left(children, folder)


async def _translated(addresses: dict[str, str]) -> str:
    """Return what the client gets for a job."""
    async with TranslationClient(addresses["bootstrap_servers"], addresses["redis_url"]) as client:
        job = TranslationJob(job_id="a1", text="Hello.", target_lang="de")
        return await (await client.submit(job)).text(timeout_s=30)


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
    assert "the worker exited with status 1 before it was ready" in process.errors
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
