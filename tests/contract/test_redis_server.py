"""The Redis server of the tests keeps, loses and refuses what a production server would."""

from __future__ import annotations

import pytest
import redis

from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis


def test_what_was_appended_survives_a_kill() -> None:
    with RedisServer(appendonly="yes", appendfsync="always") as server:
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", "1")
        server.kill()
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.get("kept") == b"1"


def test_without_a_file_a_restart_forgets_and_keeps_the_port() -> None:
    with RedisServer() as server:
        url, pid = server.url, server.pid
        with redis.Redis.from_url(url) as client:
            client.set("lost", "1")
        server.stop()
        server.start()
        assert (server.url, server.pid == pid) == (url, False)
        with redis.Redis.from_url(url) as client:
            assert client.get("lost") is None


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="did not start"), RedisServer(no_such_option="1"):
        raise AssertionError("it started")


def test_a_stopped_server_has_no_process() -> None:
    server = RedisServer().start()
    server.close()
    server.stop()
    with pytest.raises(RuntimeError, match="not running"):
        assert server.pid
