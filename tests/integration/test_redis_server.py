"""The Redis of the tests is a real server, and empty for every test."""

from __future__ import annotations

import pytest
import redis

from support.services.redis_server import RedisServer


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_finds_an_empty_server(redis_server: RedisServer, turn: int) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.dbsize() == 0
        client.set("dragoman:job:a", f"left by turn {turn}", ex=60)
        client.xadd("dragoman:events", {"job_id": "a", "status": "completed"})


def test_what_was_written_survives_a_restart(own_redis: RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.set("kept", "v", ex=60)
    own_redis.stop()
    own_redis.start()
    with redis.Redis.from_url(own_redis.url) as client:
        assert client.get("kept") == b"v"
