"""The worker's connection to one Redis server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from hiredis import pack_command
from redis.asyncio import Redis
from redis.exceptions import InvalidResponse, ResponseError

from dragoman_connections.redis_access.calls import Command
from dragoman_connections.redis_access.redis_py import connection_errors, open_pool
from dragoman_worker.stores.replies import received

SOCKET_TIMEOUT_S: Final = 5.0
"""Longer than any command blocks: XREAD 2 s, WAIT 1 s."""
CONNECT_TIMEOUT_S: Final = 2.0
_MAX_CONNECTIONS: Final = 8


class RedisConnection:
    """One server, by pipelines without a transaction. No retries: `job/outages` repeats calls."""

    def __init__(self, url: str, *, timeout_s: float = SOCKET_TIMEOUT_S) -> None:
        """`timeout_s` bounds one reply."""
        pool = open_pool(
            url,
            protocol=2,
            max_connections=_MAX_CONNECTIONS,
            timeout=timeout_s,
            socket_timeout=timeout_s,
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
                replies = await _replies(connection, len(commands))
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


async def _replies(connection: Any, count: int) -> list[Any]:
    """Wait for one reply by redis-py's rules, then add the replies that arrived with it."""
    replies: list[Any] = []
    while len(replies) < count:
        try:
            replies.append(await connection.read_response())
        except ResponseError as error:
            replies.append(error)
        replies += await received(connection, count - len(replies))
    return replies
