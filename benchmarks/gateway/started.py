"""A real Kafka and Redis, an echo worker and a gateway with keys, on this machine."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman_connections.settings import DragomanSettings, load_settings

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.processes.gateway_process import GatewayProcess
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

SECRET = "dg_benchmark"  # noqa: S105
HEADERS = {"Authorization": f"DeepL-Auth-Key {SECRET}"}
WIDE = "max_in_flight = 100000\nmax_characters_in_flight = 1000000000\n"
"""Lines of a key that bounds nothing."""


class Site(NamedTuple):
    """What was started."""

    gateway: GatewayProcess
    worker: WorkerProcess
    kafka: KafkaBroker
    redis: RedisServer
    settings: DragomanSettings
    """Of a client."""


@contextmanager
def site(
    topic: str,
    *,
    worker: Mapping[str, Any] | None = None,
    keys: Mapping[str, str] | None = None,
    **serve: Any,
) -> Iterator[Site]:
    """Start everything; `keys` are lines of TOML by secret."""
    with tempfile.TemporaryDirectory() as name, KafkaBroker() as kafka:
        folder = Path(name)
        topic = kafka.create_topic(topic, 4, None)
        kafka.create_topic(f"{topic}-dead", 1, None)
        with RedisServer(binary=shutil.which("redis-server") or "redis-server") as redis:
            given: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": redis.url, "topic": topic}
            client = load_settings(
                DragomanSettings,
                options={
                    "kafka.bootstrap_servers": kafka.bootstrap,
                    "kafka.topics": topic,
                    "redis.url": redis.url,
                },
            )
            settings = {
                "serve.keys_file": str(_keys(folder, keys or {SECRET: WIDE})),
                "serve.log_requests": False,
                **{f"serve.{setting}": value for setting, value in serve.items()},
            }
            with (
                WorkerProcess(folder, **given, settings=worker) as started,
                GatewayProcess(folder, **given, settings=settings) as gateway,
            ):
                started.ready()
                yield Site(gateway.ready(), started, kafka, redis, client)


def _keys(folder: Path, keys: Mapping[str, str]) -> Path:
    path = folder / "keys.toml"
    path.write_text(
        "".join(
            f'[[key]]\nid = "key{number}"\n'
            f'sha256 = "{hashlib.sha256(secret.encode()).hexdigest()}"\n{lines}'
            for number, (secret, lines) in enumerate(keys.items())
        )
    )
    path.chmod(0o600)
    return path
