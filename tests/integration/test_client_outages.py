"""Integration tests of the client during outages of a real Kafka broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import (
    BrokerUnreachable,
    StoreUnreachable,
    TranslationClient,
    TranslationJob,
)
from support.fakes.played_worker import PlayedWorker, records
from support.services.kafka_broker import KafkaBroker
from support.services.ports import free_ports
from support.services.redis_server import RedisServer


def settings_for(bootstrap: str, redis_url: str, timeout_s: float = 2.0) -> DragomanSettings:
    options = {
        "kafka.bootstrap_servers": bootstrap,
        "kafka.topics": "jobs",
        "redis.url": redis_url,
        "connect_timeout_s": timeout_s,
    }
    return load_settings(DragomanSettings, options=options)


def a_job(job_id: str) -> TranslationJob:
    return TranslationJob(job_id=job_id, text="Hello.", target_lang="de")


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[PlayedWorker]:
    played = PlayedWorker(redis_server.url)
    yield played
    played.close()


async def test_a_missing_broker_is_reported_in_time_and_leaves_nothing(
    redis_server: RedisServer, worker: PlayedWorker
) -> None:
    (port,) = free_ports(1)
    tasks = asyncio.all_tasks()
    began = time.monotonic()
    async with TranslationClient(
        settings=settings_for(f"127.0.0.1:{port}", redis_server.url)
    ) as client:
        with pytest.raises(BrokerUnreachable, match=f"127.0.0.1:{port} .*within 2 s.*running"):
            await client.submit(a_job("a"))
    assert time.monotonic() - began < 60
    assert asyncio.all_tasks() == tasks
    assert worker.fields("a")["status"] == "queued"  # submitting it again suffices


async def test_a_port_that_does_not_speak_kafka_is_reported_as_such(
    redis_server: RedisServer, worker: PlayedWorker
) -> None:
    settings = settings_for(f"127.0.0.1:{redis_server.port}", redis_server.url)
    async with TranslationClient(settings=settings) as client:
        with pytest.raises(BrokerUnreachable, match=r"nothing there speaks Kafka.*SASL"):
            await client.submit(a_job("a"))


async def test_a_stream_of_jobs_stops_at_the_first_that_cannot_be_published(
    redis_server: RedisServer, worker: PlayedWorker
) -> None:
    (port,) = free_ports(1)
    drawn = 0

    def endless() -> Iterator[TranslationJob]:
        nonlocal drawn
        while True:
            drawn += 1
            yield a_job(f"e-{drawn}")

    async def submit_all(client: TranslationClient) -> None:
        async for _ in client.submit_many(endless(), in_flight=100):
            pass

    async with TranslationClient(
        settings=settings_for(f"127.0.0.1:{port}", redis_server.url)
    ) as client:
        with pytest.raises(BrokerUnreachable):
            await submit_all(client)
    assert drawn <= 101


async def test_without_redis_no_record_is_published() -> None:
    (port,) = free_ports(1)
    settings = settings_for("127.0.0.1:1", f"redis://127.0.0.1:{port}/0", 1.0)
    began = time.monotonic()
    async with TranslationClient(settings=settings) as client:
        with pytest.raises(StoreUnreachable, match=f"127.0.0.1:{port} .*within 1 s"):
            await client.submit(a_job("a"))
    assert time.monotonic() - began < 60


async def test_jobs_continue_when_the_broker_returns_and_closing_is_bounded_when_it_does_not(
    own_kafka: KafkaBroker, redis_server: RedisServer, worker: PlayedWorker
) -> None:
    own_kafka.create_topic("jobs")
    client = TranslationClient(settings=settings_for(own_kafka.bootstrap, redis_server.url, 3.0))
    await client.submit(a_job("before"))

    own_kafka.pause()
    with pytest.raises(BrokerUnreachable, match="submitting it again is safe"):
        await client.submit(a_job("during"))
    own_kafka.resume()
    await client.submit(a_job("during"))
    keys = [
        record.key for record in await asyncio.to_thread(records, own_kafka.bootstrap, "jobs", 2)
    ]
    assert set(keys) == {b"before", b"during"}

    tasks = asyncio.all_tasks()
    await asyncio.to_thread(own_kafka.kill)
    with pytest.raises(BrokerUnreachable):
        await client.submit(a_job("never"))
    began = time.monotonic()
    await client.close()
    assert time.monotonic() - began < 60
    assert asyncio.all_tasks() <= tasks
