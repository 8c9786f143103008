"""How does the worker's Redis client reach one server, and how does it name its errors?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as NotInTime

from dragoman_schemas.redis_access.calls import Command, Errors
from dragoman_schemas.redis_access.slots import Redirection

SOCKET_TIMEOUT_S: Final = 5.0
"""Longer than any command of ours blocks: XREAD 2 s, WAIT 1 s."""
CONNECT_TIMEOUT_S: Final = 2.0
_MAX_CONNECTIONS: Final = 8


class RedisConnection:
    """One server, by pipelines without a transaction. No retries: only `retry.py` retries."""

    def __init__(self, url: str) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            protocol=2,
            max_connections=_MAX_CONNECTIONS,
            timeout=SOCKET_TIMEOUT_S,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            health_check_interval=30,
        )
        self._redis = Redis.from_pool(pool)

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """See Connection."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            try:
                replies: list[Any] = await pipeline.execute(raise_on_error=False)
            except RuntimeError as error:
                # uvloop's word for a connection that broke before its reader could say so
                if "handler is closed" not in str(error):
                    raise
                raise NotConnected("the connection broke") from error
            return replies

    async def disconnect(self) -> None:
        """See Connection."""
        await self._redis.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """See Connection."""
        await self._redis.aclose()


def _redirection(error: Exception) -> Redirection | None:
    if not isinstance(error, AskError):  # MovedError is one
        return None
    asking = not isinstance(error, MovedError)
    return Redirection(error.slot_id, (error.host, error.port), asking)


ERRORS: Final = Errors(
    unreachable=(NotConnected, NotInTime, OSError),
    read_only=(ReadOnlyError,),
    no_script=(NoScriptError,),
    cluster_down=(ClusterDownError, TryAgainError),
    redirection=_redirection,
    not_found=NotConnected,
)
