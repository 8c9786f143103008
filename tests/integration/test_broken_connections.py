"""Connections that break at the moment of use, on uvloop and on asyncio.

uvloop raises RuntimeError on a write to a transport that has just been closed, where asyncio
ignores it. Neither redis-py nor aiokafka expects that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from redis.exceptions import ConnectionError as NotConnected

from dragoman_connections.settings import KafkaSettings
from dragoman_producer.publisher import Publisher
from dragoman_producer.redis_link import ClientConnection
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unavailable
from dragoman_worker.kafka.publisher import KafkaPublisher
from dragoman_worker.stores.connection import RedisConnection
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

RUNNERS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@pytest.mark.redis
@RUNNERS
@pytest.mark.parametrize("kind", [RedisConnection, ClientConnection], ids=["worker", "client"])
def test_a_redis_connection_that_breaks_under_a_command_is_an_outage_and_the_next_one_works(
    kind: Any, run: Callable[[Any], None], redis_server: RedisServer
) -> None:
    async def play() -> None:
        connection = kind(redis_server.url)
        assert await connection.send([("PING",)]) == [True]
        (pooled,) = connection._redis.connection_pool._available_connections
        pooled._writer.transport.abort()
        with pytest.raises(NotConnected):
            await connection.send([("PING",)])
        assert await connection.send([("PING",)]) == [True]
        await connection.close()

    run(play())


@pytest.mark.redis
@RUNNERS
@pytest.mark.parametrize("kind", [RedisConnection, ClientConnection], ids=["worker", "client"])
def test_a_redis_connection_that_breaks_during_its_handshake_is_an_outage(
    kind: Any, run: Callable[[Any], None], redis_server: RedisServer
) -> None:
    async def greet_one_that_goes(connection: Any) -> None:
        connection._writer.transport.abort()
        await connection.on_connect()

    async def play() -> None:
        connection = kind(redis_server.url)
        made_with = connection._redis.connection_pool.connection_kwargs
        made_with["redis_connect_func"] = greet_one_that_goes
        with pytest.raises(NotConnected):
            await connection.send([("PING",)])
        await connection.close()

    run(play())


@pytest.mark.kafka
async def test_a_producer_whose_sender_died_is_replaced(
    kafka: KafkaBroker, topic: Callable[..., str]
) -> None:
    name = topic()
    publisher = KafkaPublisher(KafkaSettings(bootstrap_servers=kafka.bootstrap), client_id="w")
    await publisher.start(Deadline.after(20))
    await publisher.send(name, key=b"a", value=b"1")
    await _kill_sender(await publisher._producer.started())
    with pytest.raises(Unavailable, match="SenderDied"):
        await publisher.send(name, key=b"a", value=b"2")
    await publisher.send(name, key=b"a", value=b"2")
    await publisher.close()


@pytest.mark.kafka
async def test_a_client_whose_sender_died_replaces_its_producer(
    kafka: KafkaBroker, topic: Callable[..., str]
) -> None:
    name = topic()
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap)
    publisher = Publisher(settings, connect_timeout_s=2)
    await publisher.publish(name, b"a", b"1", ())
    first = await publisher._producer.started()
    await _kill_sender(first)
    await publisher.publish(name, b"a", b"2", ())
    assert await publisher._producer.started() is not first
    await publisher.close()


async def _kill_sender(producer: Any) -> None:
    task = producer._sender.sender_task
    task.cancel()
    await asyncio.wait({task})
