"""Integration tests of the light client beside an application, in its own environment.

The environment holds the packages of requirements/client.lock and the wheel: no torch, no vLLM. The
application in it has a schemas.py of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.fakes.played_worker import records
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

_ROOT = Path(__file__).parents[2]
_UV = Path(sys.executable).with_name("uv")

_SCHEMAS = '''
class Order:
    """A class of the application's own schemas module."""
'''

_APPLICATION = """
import asyncio
import json
import sys

import schemas
from dragoman_producer import JobStatus, TranslationClient, TranslationJob
from dragoman_schemas.wire import encode_job


async def main():
    job = TranslationJob(job_id="order-7", text="Your order has left us.", target_lang="de")
    async with TranslationClient(sys.argv[1], sys.argv[2], sys.argv[3]) as client:
        handle = await client.submit(job)
        status = await handle.status()
    print(json.dumps({
        "status": status,
        "own_schemas": schemas.__file__,
        "order": schemas.Order.__name__,
        "heavy": sorted({"torch", "vllm", "numpy", "dragoman_worker"} & set(sys.modules)),
    }))


asyncio.run(main())
"""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{command[:4]}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the interpreter of a new environment with the client's lock and the wheel."""
    folder = tmp_path_factory.mktemp("client")
    run(_UV, "build", "--quiet", "--wheel", "--out-dir", folder / "wheel", _ROOT, cwd=folder)
    (wheel,) = (folder / "wheel").glob("dragoman-*.whl")
    run(_UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", cwd=folder)
    made = folder / "venv" / "bin" / "python"
    lock = _ROOT / "requirements" / "client.lock"
    install = (_UV, "pip", "install", "--quiet", "--python", made)
    run(*install, "--requirement", lock, wheel, cwd=folder)
    return made


def test_an_application_with_its_own_schemas_submits_without_torch(
    python: Path,
    tmp_path: Path,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: Callable[..., str],
) -> None:
    (tmp_path / "schemas.py").write_text(_SCHEMAS)
    (tmp_path / "main.py").write_text(_APPLICATION)
    name = topic()
    out = run(python, "main.py", kafka.bootstrap, redis_server.url, name, cwd=tmp_path)
    assert json.loads(out) == {
        "status": "queued",
        "own_schemas": str(tmp_path / "schemas.py"),
        "order": "Order",
        "heavy": [],
    }
    (record,) = records(kafka.bootstrap, name, 1)
    assert record.key == b"order-7"


def test_the_light_environment_has_the_command_and_no_torch(python: Path, tmp_path: Path) -> None:
    assert run(python.with_name("dragoman"), "--version", cwd=tmp_path).startswith("dragoman ")
    found = "import importlib.util as u; print([n for n in ('torch', 'vllm') if u.find_spec(n)])"
    assert run(python, "-c", found, cwd=tmp_path).strip() == "[]"
