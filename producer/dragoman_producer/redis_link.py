"""How is Redis reached: with which bounds, which retries, and what is said when it is not?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import AuthenticationError, AuthorizationError, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as NotInTime

from dragoman_producer.errors import StoreRefused, StoreUnreachable
from dragoman_schemas.connections import RedisSettings

T = TypeVar("T")

_TRANSIENT: Final = (NotConnected, NotInTime, ReadOnlyError, OSError, TimeoutError)
_FORBIDDEN: Final = (AuthenticationError, AuthorizationError)
_SOCKET_TIMEOUT_S: Final = 5.0
_MAX_CONNECTIONS: Final = 16


def open_redis(settings: RedisSettings) -> Redis:
    """A client that has not connected yet.

    An explicit pool, for redis-py's default one retries for a minute of its own; a blocking one,
    for the other kind fails when hundreds of calls come at once.
    """
    pool = BlockingConnectionPool.from_url(
        settings.url,
        protocol=2,
        socket_timeout=_SOCKET_TIMEOUT_S,
        socket_connect_timeout=1.0,
        timeout=_SOCKET_TIMEOUT_S,
        max_connections=_MAX_CONNECTIONS,
        health_check_interval=30,
    )
    return Redis(connection_pool=pool)


class RedisLink:
    """Runs operations, again and again while Redis is away, for at most connect_timeout_s.

    Whatever is run must be idempotent: a lost reply is repeated.
    """

    def __init__(self, settings: RedisSettings, *, connect_timeout_s: float) -> None:
        self.redis = open_redis(settings)
        self._address = _address(settings.url)
        self._timeout_s = connect_timeout_s

    async def run(self, operation: Callable[[], Awaitable[T]]) -> T:
        """What the operation answers. Raises StoreUnreachable and StoreRefused."""
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout_s
        pause_s = 0.05
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await _cancellable(operation)
            except _FORBIDDEN as error:
                raise self._refused(error) from None
            except _TRANSIENT as error:
                if now() + pause_s >= deadline:
                    raise self._unreachable(error) from None
            except RedisError as error:
                raise self._refused(error) from None
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 1.0)

    async def close(self) -> None:
        """Close every connection."""
        await self.redis.aclose()
        await self.redis.connection_pool.disconnect()

    def _unreachable(self, error: BaseException) -> StoreUnreachable:
        why = str(error).strip() or "no answer"
        return StoreUnreachable(
            f"Redis at {self._address} could not be reached within {self._timeout_s:g} s "
            f"({why.splitlines()[0][:200]}): is it running? check redis.url"
        )

    def _refused(self, error: RedisError) -> StoreRefused:
        hint = "check redis.url" if isinstance(error, _FORBIDDEN) else "see its log"
        return StoreRefused(f"Redis at {self._address} refused: {error}; {hint}")


async def _cancellable(operation: Callable[[], Awaitable[T]]) -> T:
    """The operation; a cancellation that redis-py swallows, having its reply already, counts."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    answer = await operation()
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
    return answer


def _address(url: str) -> str:
    """Where the url points, without user and password."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    return f"{parts.hostname or '127.0.0.1'}:{parts.port or 6379}"
