"""Connection to Redis, with bounds, retries, and errors that say what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, OutOfMemoryError, RedisError, ResponseError

from dragoman_connections.redis_access import open_servers
from dragoman_connections.redis_access.calls import Call, Command, lasting
from dragoman_connections.redis_access.redis_py import ERRORS, Misfit, connection_errors, open_pool
from dragoman_connections.settings import RedisSettings
from dragoman_producer.errors import StoreRefused, StoreUnreachable, WrongStore

T = TypeVar("T")

_TRANSIENT: Final[tuple[type[Exception], ...]] = (
    TimeoutError,
    *ERRORS.unreachable,
    *ERRORS.read_only,
    *ERRORS.cluster_down,
    *ERRORS.no_script,
)
_SOCKET_TIMEOUT_S: Final = 5.0
_MAX_CONNECTIONS: Final = 16


def is_wrong_type(reply: Any) -> bool:
    """Return whether a reply says that a key is of another type than its command needs."""
    return isinstance(reply, ResponseError) and "WRONGTYPE" in str(reply)


def is_not_permitted(reply: Any) -> bool:
    """Return whether a reply says that the user may not run its command."""
    return isinstance(reply, NoPermissionError)


class ClientConnection:
    """Connections to one server, opened on first use.

    The pool is explicit, because redis-py's default pool retries for a minute; it is a blocking
    pool, because the other kind fails when hundreds of calls arrive at once.
    """

    def __init__(self, url: str) -> None:
        pool = open_pool(
            url,
            protocol=2,
            socket_timeout=_SOCKET_TIMEOUT_S,
            socket_connect_timeout=1.0,
            timeout=_SOCKET_TIMEOUT_S,
            max_connections=_MAX_CONNECTIONS,
            health_check_interval=30,
        )
        self._redis = Redis(connection_pool=pool)

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """See Connection."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            with connection_errors():
                replies: list[Any] = await pipe.execute(raise_on_error=False)
            return replies

    async def disconnect(self) -> None:
        """See Connection."""
        await self._redis.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """See Connection."""
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()


class RedisLink:
    """Runs operations, and repeats them while Redis is unavailable, for up to connect_timeout_s.

    Every operation must be idempotent: one whose reply was lost is repeated.
    """

    def __init__(self, settings: RedisSettings, *, connect_timeout_s: float) -> None:
        self._servers = open_servers(settings.address, ClientConnection, ERRORS)
        self._address = settings.address.shown
        self._prefix = settings.key_prefix
        self._timeout_s = connect_timeout_s

    async def send(self, *calls: Sequence[Command]) -> list[list[Any]]:
        """Send calls; return a reply or an error for each command of each call, in their order.

        Transient errors among the replies are retried. Raises StoreUnreachable.
        """
        return await self.run(lambda: self.send_once(*calls))

    async def send_once(self, *calls: Sequence[Command]) -> list[list[Any]]:
        """Send calls as ``send`` does, within an operation of ``run``, which retries."""
        answers = await self._servers.send([Call(commands) for commands in calls])
        for reply in (reply for answer in answers for reply in answer.replies):
            if isinstance(reply, _TRANSIENT):
                raise reply
        return [answer.replies for answer in answers]

    async def ask(self, *command: Any) -> Any:
        """Send one command and return its reply. Raises StoreUnreachable and StoreRefused."""
        ((reply,),) = await self.send([command])
        return self.checked(reply)

    async def keys(self, prefix: str) -> set[bytes]:
        """Return the keys that begin with `prefix`. Raises StoreUnreachable and StoreRefused."""
        return await self.run(lambda: self._servers.keys(prefix))

    def checked(self, reply: Any) -> Any:
        """Return the reply, or raise StoreRefused if it is an error."""
        if isinstance(reply, RedisError):
            raise self.refusal(reply) from None
        return reply

    async def run(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation and return its result. Raises StoreUnreachable and StoreRefused."""
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout_s
        pause_s = 0.05
        seen: Exception | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await _cancellable(operation)
            except _TRANSIENT as error:
                if _misfit(error):
                    raise self.refusal(error) from None
                if seen is None or not isinstance(error, TimeoutError):
                    seen = error  # the last attempt is cut off, and knows no reason
                if now() + pause_s >= deadline:
                    raise self._unreachable(seen) from None
            except RedisError as error:
                raise self.refusal(error) from None
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 1.0)

    async def close(self) -> None:
        """Close every connection."""
        await self._servers.close()

    def _unreachable(self, error: BaseException) -> StoreUnreachable:
        if isinstance(error, ERRORS.read_only):
            return StoreUnreachable(
                f"Redis at {self._address} is a read-only replica, for {self._timeout_s:g} s: name "
                "the server that accepts writes in redis.url"
            )
        why = str(error).strip() or "no reply"
        return StoreUnreachable(
            f"Redis at {self._address} could not be reached within {self._timeout_s:g} s "
            f"({why.splitlines()[0][:200]}): is it running? check redis.url"
        )

    def refusal(self, error: Exception) -> StoreRefused:
        """Return the error for a refusal: what Redis replied, and what to do."""
        if isinstance(error, OutOfMemoryError):
            return StoreRefused(
                f"Redis at {self._address} is full: {error} Raise maxmemory, or delete keys"
            )
        if isinstance(error, NoPermissionError):
            return WrongStore(
                f"Redis at {self._address} refused: {error}; give the user of redis.url this right "
                f"on the keys {self._prefix}*"
            )
        if _misfit(error):
            return WrongStore(f"Redis at {self._address} refused: {error}; check redis.url")
        return StoreRefused(f"Redis at {self._address} refused: {error}; see its log")


def _misfit(error: Exception) -> bool:
    return isinstance(error, Misfit) or lasting(error, ERRORS)


async def _cancellable(operation: Callable[[], Awaitable[T]]) -> T:
    """Run the operation; raise a cancellation that redis-py swallowed, having its reply already."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    answer = await operation()
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
    return answer
