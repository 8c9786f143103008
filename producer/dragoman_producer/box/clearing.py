"""Start of a box: what its broker has forgotten, and another engine's results, leave Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import redis.asyncio

from dragoman_connections.terminal import counted
from dragoman_producer.box.failures import BoxUnusable, writing
from dragoman_schemas import names, scripts

_AT_ONCE: Final = 1_000
_WORTHLESS: Final = frozenset({"echo", "demo"})
"""Engines whose results nobody keeps."""


async def remove_unfinished(client: redis.asyncio.Redis) -> int:
    """Delete every job key that is not terminal, with its claims; return how many there were.

    The queue was in the memory of the broker, so nobody would deliver these jobs again. Without
    their keys a new submission of the same ids runs them.
    """
    await client.script_load(scripts.RESET.text)
    removed, batch = 0, list[bytes]()
    async for key in _jobs(client):
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


async def settle_engine(client: redis.asyncio.Redis, data: Path, engine: str) -> int:
    """Remove results of the echo engine or of the demonstration's model, made before another one.

    An equal text would get them as its answer. Returns how many there were. Raises BoxUnusable
    where they are results of a model that is worth its time, and BoxFailed.
    """
    file = data / "engine"
    earlier = file.read_text(encoding="utf-8") if file.exists() else engine
    results = [] if earlier == engine else [key async for key in _jobs(client)]
    if results and earlier not in _WORTHLESS:
        raise BoxUnusable(
            f"--data {data}: {counted(len(results), 'result')} of {earlier} in it would answer for "
            f"{engine} too; give another --data, or remove this folder"
        )
    for start in range(0, len(results), _AT_ONCE):
        await client.unlink(*results[start : start + _AT_ONCE])
    with writing(file):
        file.touch(mode=0o600)
        file.write_text(engine, encoding="utf-8")
    return len(results)


def _jobs(client: redis.asyncio.Redis) -> AsyncIterator[bytes]:
    return client.scan_iter(match=names.Keys().job("*"), count=_AT_ONCE)
