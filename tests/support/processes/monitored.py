"""A busy echo worker that a real Prometheus scrapes: every metric of ours moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from support.processes.worker_process import WorkerProcess
from support.services.certificates import Authority
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.prometheus import Prometheus
from support.services.redis_server import RedisServer

RULES: Final = Path(__file__).parents[3] / "deploy/chart/dragoman/files/alerts.yaml"


@dataclass(frozen=True, slots=True)
class Monitored:
    """The worker, its Prometheus, and the topic to publish to."""

    worker: WorkerProcess
    prometheus: Prometheus
    kafka: KafkaBroker
    topic: str

    def publish(self, wave: int, jobs: int = 60) -> None:
        """Publish jobs of several items, of which some fail and some fail the gates."""
        publish(self.kafka.bootstrap, self.topic, [_job(f"w{wave}-{n}", n) for n in range(jobs)])


def _job(name: str, number: int) -> dict[str, Any]:
    """Return one job; every tenth fails, every seventh is copied by the engine."""
    texts = [f"Hello, this is sentence {number % 20} of the day.", f"{name}: good morning."]
    if number % 10 == 0:
        texts.append("#!fatal\nThis one fails.")
    elif number % 7 == 0:
        texts.append(f"#!copy\nThis sentence of {name} comes back as it was.")
    elif number % 5 == 0:
        texts.append(f"#!transient 1\nThis sentence of {name} needs two attempts.")
    return {"job_id": name, "text": texts, "source_lang": "en", "target_lang": "de"}


@contextmanager
def monitored(
    kafka: KafkaBroker, redis: RedisServer, topic: Callable[..., str], folder: Path
) -> Iterator[Monitored]:
    """Start the worker, with two topics and certificates, and its Prometheus."""
    first, second = topic(partitions=2), topic()
    kafka.create_topic(f"{first}-dead", 1)
    settings = {
        "kafka.topics": [f"{first}:4", second],
        "kafka.ssl_cafile": str(Authority(folder / "authority").ca),
        "engine.echo.latency_s": 0.2,
        "engine.options.max_num_seqs": 16,
        "quality.level": "basic",
        "memory.enabled": True,
    }
    worker = WorkerProcess(
        folder, kafka=kafka.bootstrap, redis=redis.url, topic=first, settings=settings
    )
    with worker:
        # From the first second, so that it sees every counter start at 0.
        prometheus = Prometheus(folder, [f"127.0.0.1:{worker.port}"], [RULES])
        with prometheus:
            prometheus.ready()
            worker.ready(60)
            yield Monitored(worker, prometheus, kafka, first)
