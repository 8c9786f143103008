"""The worker's client of Redis: one, with one pool of connections to each server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from hiredis import pack_command
from redis.asyncio import Redis
from redis.exceptions import InvalidResponse, ResponseError

from dragoman_connections.redis_access import open_servers
from dragoman_connections.redis_access.calls import Command, Servers
from dragoman_connections.redis_access.redis_py import ERRORS, connection_errors, open_pool
from dragoman_connections.settings import RedisSettings
from dragoman_worker.stores.replies import received

SOCKET_TIMEOUT_S: Final = 5.0
"""Longer than any command blocks: XREAD 2 s, WAIT 1 s."""
CONNECT_TIMEOUT_S: Final = 2.0
LARGE_REPLY_S: Final = 60.0
"""Limit of a reply to HMGET: the terms of a glossary in one language are up to 64 MiB."""
MAX_CONNECTIONS: Final = 8
"""Two of pipelines, one that waits for cancels, three that read glossaries, and one each that reads
and writes the memory. Each has a connection while it waits, so that none delays another."""


@asynccontextmanager
async def redis_servers(settings: RedisSettings) -> AsyncIterator[Servers]:
    """Open the servers of `redis.url`, which all stores of a replica share. Connects later."""
    servers = open_servers(settings.address, RedisConnection, ERRORS)
    try:
        yield servers
    finally:
        await servers.close()


class RedisConnection:
    """One server, by pipelines without a transaction. No retries: `job/outages` repeats calls."""

    def __init__(self, url: str) -> None:
        pool = open_pool(
            url,
            protocol=2,
            max_connections=MAX_CONNECTIONS,
            timeout=SOCKET_TIMEOUT_S,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            health_check_interval=30,
        )
        self._pool = pool
        self._redis = Redis.from_pool(pool)
        self._meanings = self._redis.response_callbacks

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """See Connection. Pack and read in bulk: redis-py's pipeline does so per command."""
        packed = b"".join(map(pack_command, commands))
        with connection_errors():  # connecting to a server that is about to stop fails likewise
            connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            try:
                await _sent(connection, packed)
                replies = await _replies(connection, commands)
            except ValueError as error:  # redis-py's, for a redirection to no server
                await connection.disconnect(nowait=True)  # replies may be left behind this one
                raise InvalidResponse(type(error).__name__) from None
            finally:
                await self._pool.release(connection)
        for place, command in enumerate(commands):
            meaning = self._meanings.get(command[0])
            if meaning is not None and not isinstance(replies[place], Exception):
                replies[place] = meaning(replies[place])
        return replies

    async def disconnect(self) -> None:
        """See Connection."""
        await self._pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """See Connection."""
        await self._redis.aclose()


async def _sent(connection: Any, packed: bytes) -> None:
    task = asyncio.current_task()
    cancels = task.cancelling() if task else 0
    await connection.send_packed_command(packed)
    if task and task.cancelling() > cancels:  # redis-py's wait_for swallows it (Python 3.11)
        await connection.disconnect(nowait=True)
        raise asyncio.CancelledError


async def _replies(connection: Any, commands: Sequence[Command]) -> list[Any]:
    """Wait for one reply by redis-py's rules, then add the replies that arrived with it."""
    replies: list[Any] = []
    while (place := len(replies)) < len(commands):
        try:
            replies.append(await _reply(connection, commands[place]))
        except ResponseError as error:
            replies.append(error)
        replies += await received(connection, len(commands) - len(replies))
    return replies


async def _reply(connection: Any, command: Command) -> Any:
    if command[0] != "HMGET":
        return await connection.read_response()
    usual_s = connection.socket_timeout  # an argument `timeout` would return None when it is over
    connection.socket_timeout = max(usual_s, LARGE_REPLY_S)
    try:
        return await connection.read_response()
    finally:
        connection.socket_timeout = usual_s
