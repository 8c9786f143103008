"""Check of the rights that the memory needs, on keys of its own that live a second."""

from __future__ import annotations

from typing import Final

from redis.exceptions import RedisError

from dragoman_connections.redis_access.calls import Call
from dragoman_connections.settings import RedisSettings
from dragoman_schemas import scripts
from dragoman_worker.stores.connection import redis_servers

_TTL_MS: Final = 500
_ENTRY: Final = (b"check".ljust(23), b"o")


async def memory_problem(redis: RedisSettings) -> str | None:
    """Return why the memory would not work, None if it would. Tries each command it uses."""
    keys = tuple(f"{redis.key_prefix}memory:{{check}}:{name}" for name in ("new", "old"))
    # At most one byte per hash: the second entry makes the newer hash the older one.
    arguments = (1, _TTL_MS, *_ENTRY, *_ENTRY)
    remember = ("EVALSHA", scripts.REMEMBER.sha1, 2, *keys, *arguments)
    call = Call(
        [
            *(remember, remember),  # the second one reads the TTL of the first one's hash
            ("HGET", keys[0], _ENTRY[0]),
            ("HMGET", f"{redis.key_prefix}memory:approved:{{check}}", _ENTRY[0]),
        ]
    )
    try:
        async with redis_servers(redis) as servers:
            (answer,) = await servers.send([call])
    except (RedisError, OSError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    errors = [str(reply)[:200] for reply in answer.replies if isinstance(reply, Exception)]
    return errors[0] if errors else None
