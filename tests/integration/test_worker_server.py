"""A worker whose engine is a server keeps the promise while that server comes and goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web

from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.openai_server import OpenAIServer, ServerThread, answer
from support.services.plain_clients import ended, job, publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]


async def slowly(_: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    await asyncio.sleep(0.05)
    return web.json_response(answer("Hallo, Welt."))


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(OpenAIServer(slowly)) as thread:
        yield thread


@pytest.fixture
def new_worker(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: MakeTopic,
    tmp_path: Path,
    server: ServerThread,
) -> Callable[..., WorkerProcess]:
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)

    def make(label: str = "worker", **more: Any) -> WorkerProcess:
        given = {
            "engine.kind": "openai",
            "engine.url": server.server.url,
            "engine.model": "m",
            "engine.profile": "chat",
            "engine.echo.faults": False,
            "quality.level": "off",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        return ForkedWorker(
            tmp_path,
            kafka=kafka.bootstrap,
            redis=redis_server.url,
            topic=name,
            name=label,
            settings=given,
        )

    return make


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


def jobs(prefix: str, count: int) -> list[dict[str, Any]]:
    return [
        {"job_id": f"{prefix}{n}", "text": f"TEXT {n}.", "target_lang": "de", "source_lang": "en"}
        for n in range(count)
    ]


@contextmanager
def running(worker: WorkerProcess) -> Iterator[WorkerProcess]:
    with worker:
        yield worker.ready(60)


def test_jobs_outlive_a_server_that_is_killed_and_comes_back_without_a_lost_attempt(
    kafka: KafkaBroker,
    client: Any,
    server: ServerThread,
    new_worker: Callable[..., WorkerProcess],
) -> None:
    with running(new_worker()) as worker:
        (topic,) = worker.settings["kafka.topics"]
        publish(kafka.bootstrap, topic, jobs("a", 200))
        wait_until(lambda: server.server.open > 2, timeout_s=20, what="requests at the server")
        server.stop()
        publish(kafka.bootstrap, topic, jobs("b", 50))
        wait_until(
            lambda: "engine_unavailable" in worker.log.read_text(), timeout_s=20, what="an outage"
        )
        assert worker.get("/livez")[0] == 200
        server.start()
        for each in [*jobs("a", 200), *jobs("b", 50)]:
            assert ended(client, each["job_id"])["status"] == "completed"
        assert worker.metric("dragoman_retries_total") == 0
        assert worker.metric("dragoman_dead_letters_total") == 0


def test_a_worker_that_stops_while_its_server_is_away_releases_its_jobs_to_the_next(
    kafka: KafkaBroker,
    client: Any,
    server: ServerThread,
    new_worker: Callable[..., WorkerProcess],
) -> None:
    with running(new_worker(shutdown__grace_s=1)) as worker:
        (topic,) = worker.settings["kafka.topics"]
        publish(kafka.bootstrap, topic, jobs("warm", 1))
        ended(client, "warm0")
        server.stop()
        publish(kafka.bootstrap, topic, jobs("c", 20))
        wait_until(
            lambda: "engine_unavailable" in worker.log.read_text(), timeout_s=20, what="an outage"
        )
        worker.terminate()
        assert worker.wait(timeout_s=20) == 0
    server.start()
    states = {job(client, each["job_id"]).get("status") for each in jobs("c", 20)}
    assert states.isdisjoint({"failed", "completed"})
    with running(new_worker("second")):
        for each in jobs("c", 20):
            assert ended(client, each["job_id"])["status"] == "completed"


def test_a_wrong_key_ends_the_replica_with_the_setting_to_change(
    server: ServerThread, new_worker: Callable[..., WorkerProcess]
) -> None:
    server.server.key = "right"
    with new_worker(engine__api_key="hunter2") as worker:
        assert worker.wait(timeout_s=30) != 0
        assert "engine.api_key" in worker.log.read_text()
        assert "hunter2" not in worker.log.read_text()
