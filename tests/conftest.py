"""What do tests of every folder share? The real services, one of each a session."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from support.plugins.engine_fixtures import echo_engine, tiny_model, vllm_engine  # noqa: F401
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
    """The folder of Kafka's jars; skips where this machine cannot run a broker."""
    try:
        return kafka_jars()
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka(kafka_installed: Path) -> Iterator[KafkaBroker]:
    """One real Apache Kafka for the session; use `topic` for a topic of your own."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def own_kafka(kafka_installed: Path) -> Iterator[KafkaBroker]:
    """A real Apache Kafka for one test, which may kill and pause it."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def topic(kafka: KafkaBroker) -> Callable[..., str]:
    """Makes topics with names that no other test has: `topic(partitions=3, configs={...})`."""
    numbers = itertools.count()
    test = uuid.uuid4().hex[:8]

    def create(partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        return kafka.create_topic(f"test-{test}-{next(numbers)}", partitions, configs)

    return create


@pytest.fixture(scope="session")
def redis_installed() -> str:
    """The path of redis-server; skips where it is missing."""
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("a real Redis needs redis-server (Debian: redis-server)")
    return found


@pytest.fixture(scope="session")
def redis_server(redis_installed: str) -> Iterator[RedisServer]:
    """One real Redis for the session, empty at the start of each test that uses it."""
    with RedisServer(binary=redis_installed, appendonly="yes") as server:
        yield server


@pytest.fixture
def own_redis(redis_installed: str) -> Iterator[RedisServer]:
    """A real Redis for one test, which may stop, kill and restart it."""
    with RedisServer(binary=redis_installed, appendonly="yes") as server:
        yield server


@pytest.fixture(autouse=True)
def _redis_keys_expire(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empties the shared Redis before a test; after it, only streams may live for ever.

    A key without a TTL that slips in is a leak that no user would notice for months.
    """
    used = "redis_server" in request.fixturenames
    server = request.getfixturevalue("redis_server") if used else None
    # A folder may have a fixture of this name for servers of its own.
    if not isinstance(server, RedisServer):
        yield
        return
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield
        assert _immortal(client) == []


def _immortal(client: redis.Redis) -> list[str]:
    return [
        key.decode()
        for key in client.scan_iter()
        if client.ttl(key) == -1 and client.type(key) != b"stream"
    ]


@pytest.fixture(scope="session")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of the client's own environment: our wheel and client.lock, no torch."""
    return make_light_client(tmp_path_factory.mktemp("light"))


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The folder of the demonstration model, for tests of the real vLLM."""
    folder = _ROOT / "demo" / "model"
    if not (folder / "config.json").is_file():
        pytest.skip(f"no demonstration model in {folder.relative_to(_ROOT)}")
    # Looked up, not imported: that takes many seconds, and the engine runs in a child.
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    return folder
