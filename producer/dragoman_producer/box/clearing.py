"""Start of a box: what its broker has forgotten is removed from Redis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import redis.asyncio

from dragoman_schemas import names, scripts

_AT_ONCE: Final = 1_000


async def remove_unfinished(client: redis.asyncio.Redis) -> int:
    """Delete every job key that is not terminal, with its claims; return how many there were.

    The queue was in the memory of the broker, so nobody would deliver these jobs again. Without
    their keys a new submission of the same ids runs them.
    """
    keys = names.Keys()
    await client.script_load(scripts.RESET.text)
    removed, batch = 0, list[bytes]()
    async for key in client.scan_iter(match=keys.job("*"), count=_AT_ONCE):
        batch.append(key)
        if len(batch) == _AT_ONCE:
            removed += await _reset(client, batch)
            batch.clear()
    return removed + await _reset(client, batch)


async def _reset(client: redis.asyncio.Redis, keys: Sequence[bytes]) -> int:
    async with client.pipeline(transaction=False) as pipe:
        for key in islice(keys, _AT_ONCE):
            pipe.evalsha(scripts.RESET.sha1, 1, key)
        replies = await pipe.execute(raise_on_error=False)  # another program's key of another type
    return sum(
        scripts.parse_removal(reply).removed for reply in replies if isinstance(reply, list | tuple)
    )
