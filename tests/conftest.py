"""What do tests of every folder share? The real services, one of each a session."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.kafka_broker import KafkaBroker, KafkaUnavailable, kafka_jars
from support.service_report import ServiceReport

_ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ServiceReport(), "dragoman-services")


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
def demo_model() -> Path:
    """The folder of the demonstration model, for tests of the real vLLM."""
    folder = _ROOT / "demo" / "model"
    if not (folder / "config.json").is_file():
        pytest.skip(f"no demonstration model in {folder.relative_to(_ROOT)}")
    pytest.importorskip("vllm", reason="vLLM is not installed")
    return folder
