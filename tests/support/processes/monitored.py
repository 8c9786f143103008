"""A busy worker, with echo or vLLM, that a real Prometheus scrapes: every metric of ours moves."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from support.monitoring_queries import RULES
from support.processes.gateway_process import GatewayProcess
from support.processes.worker_process import WorkerProcess
from support.services.certificates import Authority
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.prometheus import Prometheus
from support.services.redis_server import RedisServer

_DEMO: Final = Path(__file__).parents[3] / "demo"


@dataclass(frozen=True, slots=True)
class Load:
    """An engine, and jobs for it of which some fail, some fail the gates and some repeat."""

    settings: Mapping[str, Any]
    job: Callable[[str, int], dict[str, Any]]
    ready_s: float


@dataclass(frozen=True, slots=True)
class Monitored:
    """The worker, its Prometheus, and the topic to publish to."""

    worker: WorkerProcess
    prometheus: Prometheus
    kafka: KafkaBroker
    topic: str
    load: Load
    gateway: GatewayProcess

    def publish(self, wave: int, jobs: int = 60) -> None:
        """Publish jobs of several items, of which some fail and some fail the gates, and ask once.

        The gateway's answer is worth a row, whatever it is.
        """
        self.gateway.translated(f"Wave {wave} is asked for.")
        values = [self.load.job(f"w{wave}-{number}", number) for number in range(jobs)]
        publish(self.kafka.bootstrap, self.topic, values)


def _echo_job(name: str, number: int) -> dict[str, Any]:
    """Return one job; every tenth fails, every seventh is copied by the engine."""
    texts = [f"Hello, this is sentence {number % 20} of the day.", f"{name}: good morning."]
    if number % 10 == 0:
        texts.append("#!fatal\nThis one fails.")
    elif number % 7 == 0:
        texts.append(f"#!copy\nThis sentence of {name} comes back as it was.")
    elif number % 5 == 0:
        texts.append(f"#!transient 1\nThis sentence of {name} needs two attempts.")
    return {"job_id": name, "text": texts, "source_lang": "en", "target_lang": "de"}


ECHO: Final = Load(
    {"engine.echo.latency_s": 0.2, "engine.options.max_num_seqs": 16}, _echo_job, ready_s=60
)


@functools.cache
def _sentences() -> Sequence[str]:
    lines = (_DEMO / "training" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = map(json.loads, lines)
    return [pair["source"] for pair in pairs if pair["source_lang"] == "en"]


def _vllm_job(name: str, number: int) -> dict[str, Any]:
    """Return one job; every tenth fails, every seventh has what the demo's model leaves out."""
    sentences = _sentences()
    texts = [sentences[number % 20], sentences[crc32(name.encode()) % len(sentences)]]
    if number % 7 == 0:
        texts.append(f"Send {{name}} the 4,{number:03} euros by https://example.com/{name}.")
    target = "it" if number % 10 == 0 else "de"  # the demo's model has no Italian
    job = {"job_id": name, "text": texts, "source_lang": "en", "target_lang": target}
    # Hot sampling writes too much or nothing, so generations are repeated and some fail the gates.
    return {**job, "sampling": {"temperature": 2.0}} if number % 60 == 5 else job


VLLM: Final = Load(
    {
        "engine.kind": "vllm",
        "engine.model": str(_DEMO / "model"),
        "engine.profile": "demo",
        "engine.options.max_num_seqs": 64,
        "engine.options.max_model_len": 512,
        "engine.options.enforce_eager": True,
    },
    _vllm_job,
    ready_s=300,
)
"""The demo's model in a real vLLM."""


@contextmanager
def monitored(
    kafka: KafkaBroker,
    redis: RedisServer,
    topic: Callable[..., str],
    folder: Path,
    load: Load = ECHO,
) -> Iterator[Monitored]:
    """Start the worker, with two topics and certificates, and its Prometheus."""
    first, second = topic(partitions=2), topic()
    kafka.create_topic(f"{first}-dead", 1)
    settings = {
        "kafka.topics": [f"{first}:4", second],
        "kafka.ssl_cafile": str(Authority(folder / "authority").ca),
        "quality.level": "basic",
        "memory.enabled": True,
        **load.settings,
    }
    worker = WorkerProcess(
        folder, kafka=kafka.bootstrap, redis=redis.url, topic=first, settings=settings
    )
    gateway = GatewayProcess(
        folder,
        kafka=kafka.bootstrap,
        redis=redis.url,
        topic=second,
        settings={"serve.languages": ["de", "en"]},
    )
    with worker, gateway:
        # From the first second, so that it sees every counter start at 0.
        prometheus = Prometheus(
            folder, [f"127.0.0.1:{port}" for port in (worker.port, gateway.admin_port)], [RULES]
        )
        with prometheus:
            prometheus.ready()
            worker.ready(load.ready_s)
            yield Monitored(worker, prometheus, kafka, first, load, gateway.ready())
