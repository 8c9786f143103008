"""The commands of the README and the tutorial run as printed, on every path that they offer.

The client is that of the tutorial's step 1, in its own environment. The tests run once with a real
Kafka and a real Redis, and once with `dragoman up`.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dragoman_schemas.wire import decode_job, open_record
from support.processes.child_process import ChildProcess, command
from support.processes.readme_shell import (
    README,
    ReadmeShell,
    blocks,
    console_commands,
    inline_commands,
    text,
)
from support.services.kafka_broker import KafkaBroker
from support.services.ports import free_ports
from support.services.redis_server import RedisServer

_PUBLISH: Final = next(line for line in console_commands() if "kcat" in line)

ELSEWHERE: Final = {
    "make demo": "tests/integration/test_demo.py runs the command behind it, on the real model",
    "make test": "runs this test",
    "make install": "made the environment that runs this test",
    "python3 -m venv ~/dragoman-client && . ~/dragoman-client/bin/activate": "fixture `light`",
    "pip install -r requirements/client.lock && pip install --no-deps .": "fixture `light`",
    "pip install '.[echo]'": "needs a package index",
    "pip install '.[worker]'": "needs a GPU",
    "make install && .venv/bin/dragoman up --engine echo": "fixture `shell`",
    "dragoman-worker run --set engine.kind=echo": "fixture `shell`",
    "dragoman-worker run --set engine.model=tencent/Hy-MT2-7B": "needs a GPU",
    ".venv/bin/dragoman-worker run --set engine.model=demo/model --set engine.profile=demo": (
        "tests/integration/test_worker_vllm.py"
    ),
    "dragoman translate docs --to de,fr --out translated": (
        "tests/integration/test_translate_documents.py runs it on a folder of the test's own"
    ),
    "dragoman serve": "tests/integration/test_gateway.py",
    ".venv/bin/dragoman translate notes.md --from en --to de --out translated --engine demo": (
        "tests/integration/test_demo.py has the model, test_box.py the option"
    ),
    "python3 -m venv ~/dragoman && . ~/dragoman/bin/activate && "
    "pip install '.[box,worker,parquet]'": "needs a GPU",
    "dragoman translate docs --from en --to de,fr --out translated --model tencent/Hy-MT2-7B": (
        "needs a GPU; tests/integration/test_box.py has --model"
    ),
    "dragoman up --model tencent/Hy-MT2-7B": "needs a GPU; tests/integration/test_box.py",
    "dragoman translate docs --to de --out translated --server http://HOST:8000": (
        "tests/integration/test_box.py has --server"
    ),
    "dragoman review translated": (
        "tests/integration/test_translate_documents.py runs it on a folder of the test's own"
    ),
    "make docs": "tests/unit/docs checks the links",
    "dragoman translate rows.parquet --column text --to de --out translated": (
        "tests/unit/producer/runs/test_parquet.py; tests/integration/test_audit.py estimates one"
    ),
    "dragoman translate": "the name of a command that is run with its arguments",
    "dragoman submit FILE.jsonl --wait": "tests/integration/test_bulk_commands.py",
    "dragoman submit": "the name of a command that is run with its arguments",
}
HERE: Final = {
    "dragoman topics create",
    'dragoman submit --from en --to de --id hello "Good morning!"',
    "dragoman result hello --wait --timeout 30",
    "dragoman status hello",
    _PUBLISH,
    "redis-cli HMGET dragoman:job:a1 status result",
    "dragoman-worker why",
    "dragoman-worker check",
    "curl 127.0.0.1:9464/readyz",
    "dragoman-worker profiles",
}


def test_every_command_of_the_readme_is_run_or_says_where_it_is() -> None:
    assert {*console_commands(), *inline_commands()} == HERE | set(ELSEWHERE)


@pytest.fixture(params=["services", "up"])
def shell(
    request: pytest.FixtureRequest, light: Path, kafka: KafkaBroker, redis_server: RedisServer
) -> Iterator[ReadmeShell]:
    """Yield a terminal, with a worker that is ready."""
    with tempfile.TemporaryDirectory(prefix="readme-") as name:
        folder = Path(name)
        start = _services if request.param == "services" else _up
        yield from start(folder, light, kafka, redis_server)


def _services(
    folder: Path, light: Path, kafka: KafkaBroker, redis: RedisServer
) -> Iterator[ReadmeShell]:
    port = free_ports(1)[0]
    made = ReadmeShell(
        folder, light, kafka=kafka.bootstrap, redis=redis.url, worker=f"http://127.0.0.1:{port}"
    )
    made.env["DRAGOMAN_HTTP__PORT"] = str(port)
    assert made("dragoman topics create").splitlines() == [
        "dragoman.jobs\tcreated\t12",
        "dragoman.dead-letters\tcreated\t12",
    ]
    run = command("dragoman-worker", "run", "--set", "engine.kind=echo")
    with ChildProcess(run, log=folder / "worker", env=made.env) as worker:
        worker.wait_for(
            lambda: made.attempt("curl -sf 127.0.0.1:9464/readyz").returncode == 0,
            timeout_s=60,
            what="/readyz",
        )
        yield made


def _up(folder: Path, light: Path, kafka: KafkaBroker, redis: RedisServer) -> Iterator[ReadmeShell]:
    del kafka, redis
    up = command("dragoman", "up", "--engine", "echo", "--data", str(folder / "data"))
    env = {"TMPDIR": str(folder)}
    with ChildProcess(up, log=folder / "up", env=env, split_streams=True) as trial:
        trial.wait_for(lambda: "Ctrl-C" in trial.errors, timeout_s=90, what="the addresses")
        exports = dict(re.findall(r"export (\w+)=(\S+)", trial.output))
        [page] = re.findall(r"dragoman-worker why --url (\S+)", trial.output)
        made = ReadmeShell(
            folder,
            light,
            kafka=exports["DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS"],
            redis=exports["DRAGOMAN_REDIS__URL"],
            worker=page,
        )
        made.env["WHY"] = f"--url {page}"
        yield made


@pytest.mark.kafka
@pytest.mark.redis
def test_every_command_prints_what_the_readme_shows(shell: ReadmeShell) -> None:
    run = shell
    assert run("dragoman topics create").splitlines() == [
        "dragoman.jobs\texists\t12",
        "dragoman.dead-letters\texists\t12",
    ]
    assert run('dragoman submit --from en --to de --id hello "Good morning!"') == "hello\n"
    assert run("dragoman result hello --wait --timeout 30") == "[de] Good morning!\n"
    assert run("dragoman status hello") == "hello\tcompleted\n"
    run(_PUBLISH)
    assert run("dragoman result a1 --wait --timeout 30") == "[de] Hello.\n"
    stored = run("redis-cli HMGET dragoman:job:a1 status result").splitlines()
    assert stored[0] == "completed"
    assert json.loads(stored[1])["translations"][0]["text"] == "[de] Hello."
    assert run("curl -s 127.0.0.1:9464/readyz").strip() == "ok"
    assert "To change:" in run(f"$WORKER why {run.env.get('WHY', '')}")
    assert "demo" in run("$WORKER profiles")
    assert "engine: echo" in run("$WORKER check --set engine.kind=echo --set http.port=0")
    # The other commands for people who operate it.
    assert len(run("dragoman topics show --json").splitlines()) == 24
    assert run("dragoman dead-letters list") == ""
    assert json.loads(run("dragoman audit --json"))["balances"] is True
    short, example = blocks("python")
    (run.folder / "short.py").write_text(short, encoding="utf-8")
    assert run("python short.py") == "['[de] Good day!']\n"
    (run.folder / "example.py").write_text(example, encoding="utf-8")
    assert run("python example.py").splitlines() == [
        "['[de] Good morning!', '[de] A table for {n}, please.']",
        "1000 completed",
    ]


def test_the_jobs_shown_are_jobs() -> None:
    reference = (README.parent / "docs" / "reference" / "jobs.md").read_text(encoding="utf-8")
    shown = re.findall(r"```json\n(\{.*\})\n```", reference)
    shown += re.findall(r"echo '(\{.*\})'", text())
    assert len(shown) == 2
    for job in shown:
        value = job.encode()
        assert decode_job(open_record(value), size=len(value)).job_id == "a1"
