"""Fixtures for tests of every folder: the real services, one of each per session."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, settings

# Hypothesis measures how long an example and its data take, which depends on the machine's pace.
# The default examples are always the same, so that a run says something about the change alone;
# `--hypothesis-profile thorough` tries many others.
for name, examples in (("dragoman", 40), ("thorough", 500)):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=name == "dragoman",
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("dragoman")
pytest.register_assert_rewrite("support")  # its failed assertions show what differed

# ruff: noqa: E402  the modules are imported after that
from support.plugins.engine_fixtures import (  # noqa: F401
    echo_engine,
    llama_engine,
    llama_installed,
    llama_server,
    openai_engine,
    tiny_model,
    vllm_engine,
    vllm_server,
)
from support.plugins.service_report import ServiceReport
from support.plugins.side_by_side import SideBySide
from support.processes.light_client import make_light_client
from support.services.kafka_broker import KafkaBroker, KafkaUnavailable, kafka_jars
from support.services.redis_server import RedisServer

_ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ServiceReport(), "dragoman-services")
    config.pluginmanager.register(SideBySide(), "dragoman-side-by-side")


@pytest.fixture(scope="session")
def kafka_installed() -> Path:
    """Return the folder of Kafka's jars; skip where this machine cannot run a broker."""
    try:
        return kafka_jars()
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka(kafka_installed: Path) -> Iterator[KafkaBroker]:
    """Start one real Apache Kafka for the session; use `topic` to create a topic."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def own_kafka(kafka_installed: Path) -> Iterator[KafkaBroker]:
    """Start a real Apache Kafka for one test, which may kill and stop it."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def topic(kafka: KafkaBroker) -> Callable[..., str]:
    """Return a function that creates topics: `topic(partitions=3, configs={...})`.

    No other test has their names.
    """
    numbers = itertools.count()
    test = uuid.uuid4().hex[:8]

    def create(partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        return kafka.create_topic(f"test-{test}-{next(numbers)}", partitions, configs)

    return create


@pytest.fixture(scope="session")
def redis_installed() -> str:
    """Return the path of redis-server; skip where it is missing."""
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("a real Redis needs redis-server (Debian: redis-server)")
    return found


@pytest.fixture(scope="session")
def redis_server(redis_installed: str) -> Iterator[RedisServer]:
    """Start one real Redis for the session, empty at the start of each test that uses it."""
    with RedisServer(binary=redis_installed, appendonly="yes") as server:
        yield server


@pytest.fixture
def own_redis(redis_installed: str) -> Iterator[RedisServer]:
    """Start a real Redis for one test, which may stop, kill and restart it."""
    with RedisServer(binary=redis_installed, appendonly="yes") as server:
        yield server


@pytest.fixture(autouse=True)
def _redis_keys_expire(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empty the shared Redis before a test; after it, only streams and glossaries have no TTL.

    Any other key without a TTL is a leak that users would notice only after months.
    """
    used = "redis_server" in request.fixturenames
    server = request.getfixturevalue("redis_server") if used else None
    # A folder may override the fixture with servers of other kinds.
    if not isinstance(server, RedisServer):
        yield
        return
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield
        assert _immortal(client) == []


def _immortal(client: redis.Redis) -> list[str]:
    without = (b"glossary:", b"memory:approved:")
    return [
        key.decode()
        for key in client.scan_iter()
        if client.ttl(key) == -1
        and client.type(key) != b"stream"
        and not any(part in key for part in without)
    ]


@pytest.fixture(scope="session")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and client.lock, without torch, and return the environment's bin folder."""
    return make_light_client(tmp_path_factory.mktemp("light"))


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """Return the folder of the demonstration model, for tests of the real vLLM."""
    folder = _ROOT / "demo" / "model"
    if not (folder / "config.json").is_file():
        pytest.skip(f"no demonstration model in {folder.relative_to(_ROOT)}")
    # Not imported: an import takes many seconds, and the engine runs in a child process.
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    return folder
