"""Whether Redis serves the memory: now, with one warning per outage, and for `check` at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from redis.exceptions import RedisError, ResponseError
from tenacity import AsyncRetrying

from dragoman_connections.redis_access.calls import Call, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_schemas import scripts
from dragoman_worker.backoff import LONGEST_S, backoff
from dragoman_worker.log import logger
from dragoman_worker.stores.connection import redis_servers

_REPORT_AFTER_S: Final = 1.0
"""A look-up that is slow once is no outage."""
TRY_LIMIT_S: Final = 5.0
"""Time for one attempt to connect and to get an answer, TLS included."""
WARN_EVERY_S: Final = 3_600.0
"""Between two warnings of the same refusal: one shard may refuse while the others answer."""
_CHECK_TTL_MS: Final = 500
_CHECK_ENTRY: Final = (b"check".ljust(23), b"o")
_CODES: Final = {
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
}
"""Codes that redis-py strips from the errors of these classes."""


def refusal(error: Exception) -> str:
    """Return the error's code, such as `OOM` or `WRONGTYPE`, or its class. Quotes no value."""
    kind = type(error).__name__
    word = str(error).partition(" ")[0]
    if kind not in _CODES and isinstance(error, ResponseError) and word.isupper():
        return word[:40]
    return _CODES.get(kind, kind)


class MemoryOutages:
    """Availability of Redis to the memory. While it is unavailable, a task tries to reach it."""

    def __init__(
        self,
        servers: Servers,
        *,
        longest_pause_s: float = LONGEST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._backoff = backoff(longest_s=longest_pause_s)
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._warned: dict[tuple[str, str], float] = {}
        self.available = True
        self._reported = False
        """Whether the current outage has been logged."""

    async def start(self) -> None:
        """Connect; if that fails, warn and go on trying. Never raises an Exception."""
        try:
            await self._reach()
        except Exception as error:  # noqa: BLE001  the memory is not needed to work
            self.failed(error)

    async def close(self) -> None:
        """Stop trying."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def failed(self, error: Exception) -> None:
        """Begin an outage, unless there is one.

        Redis is tried at once: a single slow reply, as on a busy machine, costs that look-up alone.
        """
        if not self.available:
            return
        self.available = False
        self._task = asyncio.create_task(self._until_reached(error), name="memory-outage")

    def refused(self, code: str, operation: str) -> None:
        """Warn that Redis answers, but refuses an operation."""
        now, last = self._clock(), self._warned.get((code, operation))
        if last is None or now - last >= WARN_EVERY_S:
            self._warned[code, operation] = now
            logger().warning("memory_refused", error=code, operation=operation)

    async def _until_reached(self, error: Exception) -> None:
        report = asyncio.get_running_loop().call_later(_REPORT_AFTER_S, self._report, error)

        async def attempt() -> None:
            try:
                await self._reach()
            except Exception as again:
                self._report(again)
                raise

        await AsyncRetrying(wait=self._backoff)(attempt)
        self.available = True
        report.cancel()
        if not self._reported:
            self.refused(refusal(error), "recall")
            return
        self._reported = False
        logger().info("memory_back")

    def _report(self, error: Exception) -> None:
        if not self._reported and not self.available:
            self._reported = True
            logger().warning("memory_unavailable", error=refusal(error))

    async def _reach(self) -> None:
        async with asyncio.timeout(TRY_LIMIT_S):
            answers = await self._servers.each(("PING",))
        for replies in answers:
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply


async def memory_problem(redis: RedisSettings) -> str | None:
    """Return why the memory would not work, None if it would. Tries each command it uses."""
    keys = tuple(f"{redis.key_prefix}memory:{{check}}:{name}" for name in ("new", "old"))
    # At most one byte per hash: the second entry makes the newer hash the older one.
    arguments = (1, _CHECK_TTL_MS, *_CHECK_ENTRY, *_CHECK_ENTRY)
    remember = ("EVALSHA", scripts.REMEMBER.sha1, 2, *keys, *arguments)
    call = Call(
        [
            *(remember, remember),  # the second one reads the TTL of the first one's hash
            ("HGET", keys[0], _CHECK_ENTRY[0]),
            ("HMGET", f"{redis.key_prefix}memory:approved:{{check}}", _CHECK_ENTRY[0]),
        ]
    )
    try:
        async with redis_servers(redis) as servers:
            (answer,) = await servers.send([call])
    except (RedisError, OSError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    errors = [str(reply)[:200] for reply in answer.replies if isinstance(reply, Exception)]
    return errors[0] if errors else None
