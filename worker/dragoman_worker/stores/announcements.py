"""The hash `dragoman:workers`: what each replica says of itself, for dry runs and `audit`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from redis.exceptions import RedisError

from dragoman_connections.redis_access.calls import Call, Command, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_schemas.names import Keys
from dragoman_worker.log import logger
from dragoman_worker.stores.connection import redis_servers

EVERY_S: Final = 10.0
_EXPIRE_S: Final = 60
_GONE_S: Final = 3_600.0
_CHECK: Final = "check"
RIGHT: Final = "+hset +expire +hgetall +hdel on the key"


class Announcements:
    """Announces one replica, and removes those that are long gone. Never raises for Redis."""

    def __init__(self, settings: RedisSettings, servers: Servers, replica: str) -> None:
        self._servers = servers
        self._key = Keys(settings.key_prefix).workers
        self._replica = replica
        self._refused = False

    async def forever(self, standing: Callable[[], Mapping[str, Any]]) -> None:
        """Announce what `standing` returns, every EVERY_S."""
        while True:
            await self.announce(standing())
            await asyncio.sleep(EVERY_S)

    async def announce(self, standing: Mapping[str, Any]) -> None:
        """Announce the replica once. Without Redis or the right the hint is missing, no more."""
        try:
            replies = await self._send(*announcing(self._key, self._replica, standing))
            errors = [each for each in replies if isinstance(each, Exception)]
            if errors:
                self._warn(errors[0])
            elif gone := _gone(replies[-1]):
                await self._send(("HDEL", self._key, *gone))
        except (RedisError, OSError) as error:
            self._warn(error)

    async def _send(self, *commands: Command) -> list[Any]:
        (answer,) = await self._servers.send([Call(commands)])
        return answer.replies

    def _warn(self, error: Exception) -> None:
        if not self._refused:
            self._refused = True
            logger().warning("announcement_refused", error=type(error).__name__)


def announcing(key: str, replica: str, standing: Mapping[str, Any]) -> list[Command]:
    """Return the commands of one announcement; the last one reads all of them."""
    seen = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    value = json.dumps({**standing, "seen": seen}, ensure_ascii=False)
    return [("HSET", key, replica, value), ("EXPIRE", key, _EXPIRE_S), ("HGETALL", key)]


def _gone(found: Mapping[bytes, bytes]) -> list[bytes]:
    """Return the replicas that have not been seen for an hour, or that say nothing readable."""
    before = time.time() - _GONE_S
    return [name for name, value in found.items() if _seen(value) < before]


def _seen(value: bytes) -> float:
    try:
        return datetime.fromisoformat(json.loads(value)["seen"]).timestamp()
    except (ValueError, LookupError, TypeError, OverflowError):
        return 0.0


async def announcement_problem(redis: RedisSettings) -> str | None:
    """Return why a replica could not announce itself, None if it could. Tries each command."""
    key = Keys(redis.key_prefix).workers
    commands = [*announcing(key, _CHECK, {}), ("HDEL", key, _CHECK)]
    try:
        async with redis_servers(redis) as servers:
            (answer,) = await servers.send([Call(commands)])
    except (RedisError, OSError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    errors = [str(each)[:200] for each in answer.replies if isinstance(each, Exception)]
    return f"{errors[0]}; give the user of redis.url {RIGHT} {key}" if errors else None
