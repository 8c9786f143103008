"""The hash `dragoman:workers`: written by replicas, read by the client, on a real Redis."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from dragoman_connections.settings import DragomanSettings, RedisSettings
from dragoman_producer.operations.workers import LiveWorker, live_workers
from dragoman_worker.stores.announcements import Announcements, announcement_problem
from dragoman_worker.stores.connection import redis_servers
from support.services.redis_server import RedisServer

KEY = "dragoman:workers"
SAID = {"model": "m", "jobs_per_s": 2.5}

pytestmark = pytest.mark.redis


@pytest.fixture
def client(redis_server: RedisServer) -> Any:
    with redis.Redis.from_url(redis_server.url) as opened:
        opened.delete(KEY)
        yield opened
        opened.delete(KEY)


async def announce(settings: RedisSettings) -> None:
    async with redis_servers(settings) as servers:
        await Announcements(settings, servers, "host-1.0").announce(SAID)


async def test_a_replica_is_seen_and_those_gone_for_an_hour_are_removed(
    client: Any, redis_server: RedisServer
) -> None:
    old = json.dumps({**SAID, "seen": "2020-01-01T00:00:00.000Z"})
    client.hset(KEY, mapping={"old": old, "odd": "no JSON"})
    settings = RedisSettings(url=redis_server.url)
    await announce(settings)
    assert client.hkeys(KEY) == [b"host-1.0"]
    assert 0 < client.ttl(KEY) <= 60
    found = await live_workers(DragomanSettings(redis=settings))
    assert found == [LiveWorker("host-1.0", "m", 2.5)]


async def test_what_was_not_seen_for_half_a_minute_is_not_live(
    client: Any, redis_server: RedisServer
) -> None:
    old = json.dumps({**SAID, "seen": "2020-01-01T00:00:00.000Z"})
    client.hset(KEY, mapping={"old": old, "odd": b"\xff", "list": "[]"})
    settings = RedisSettings(url=redis_server.url)
    assert await live_workers(DragomanSettings(redis=settings)) == []


async def test_without_the_right_the_hint_is_lost_and_check_names_the_right(
    client: Any, redis_server: RedisServer
) -> None:
    client.acl_setuser(
        "narrow", enabled=True, passwords=["+x"], keys=["dragoman:job:*"], commands=["+@all"]
    )
    try:
        settings = RedisSettings(url=redis_server.url.replace("redis://", "redis://narrow:x@"))
        await announce(settings)
        problem = await announcement_problem(settings)
        assert problem is not None
        assert "+hset +expire +hgetall +hdel on the key dragoman:workers" in problem
        assert await live_workers(DragomanSettings(redis=settings)) == []
        assert client.exists(KEY) == 0
        assert await announcement_problem(RedisSettings(url=redis_server.url)) is None
    finally:
        client.acl_deluser("narrow")


async def test_a_redis_that_is_away_has_no_live_workers() -> None:
    settings = RedisSettings(url="redis://127.0.0.1:1")
    assert await live_workers(DragomanSettings(redis=settings)) == []
