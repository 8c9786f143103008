"""The program of docs/how-to/submit-from-go.md, compiled, on a real Kafka, Redis and worker."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from support.processes.waiting import patient
from support.processes.worker_process import ForkedWorker
from support.services.go_program import GoUnavailable, built
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

_PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "submit-from-go.md"


def block(language: str) -> str:
    """Return the only block of a language on the page."""
    [found] = re.findall(rf"```{language}\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    return str(found)


@pytest.fixture(scope="session")
def program() -> Path:
    """Return the compiled program of the page.

    Its addresses are constants on the page; here they come from the environment.
    """
    source = block("go")
    for constant, value in (
        ("broker", "127.0.0.1:9092"),
        ("store", "redis://127.0.0.1:6379/0"),
        ("topic", "dragoman.jobs"),
    ):
        spelled = rf'{constant}\s*= "{re.escape(value)}"'
        assert len(re.findall(spelled, source)) == 1
        source = re.sub(spelled, f'{constant} = os.Getenv("EXAMPLE_{constant.upper()}")', source)
    assert source.count("const (") == 1
    try:
        return built(source.replace("const (", "var ("))
    except GoUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def worker(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> Iterator[ForkedWorker]:
    """Start a worker with the echo engine."""
    name = topic()
    kafka.create_topic(f"{name}-dead", 1)
    worker = ForkedWorker(tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=name)
    try:
        worker.start()
        yield worker.ready()
    finally:
        worker.stop()


def test_the_program_of_the_page_prints_what_the_page_shows(
    program: Path, worker: ForkedWorker, kafka: KafkaBroker, redis_server: RedisServer
) -> None:
    console = block("console")
    [lines] = re.findall(r"printf '(.*)' \| go run", console)
    shown = console.partition("go run .\n")[2]
    done = subprocess.run(
        [program],
        input=lines.replace("\\n", "\n"),
        env={
            "EXAMPLE_BROKER": kafka.bootstrap,
            "EXAMPLE_STORE": redis_server.url,
            "EXAMPLE_TOPIC": worker.settings["kafka.topics"][0],
        },
        capture_output=True, text=True, check=False, timeout=patient(60),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, shown), done.stderr
