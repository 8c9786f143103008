"""Room for the results of a box: on the disk, and in memory."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

import redis.asyncio
from redis.exceptions import RedisError

_LEAST_DISK: Final = 64 * 1024 * 1024
"""Bytes below which a disk counts as full."""
_NEARLY: Final = 0.9


async def shortages(client: redis.asyncio.Redis, data: Path) -> set[str]:
    """Return a sentence for each shortage; none while Redis is being restarted."""
    try:
        persistence = await client.info("persistence")
        memory = await client.info("memory")
        disk = await asyncio.to_thread(shutil.disk_usage, data)
    except (RedisError, OSError):
        return set()
    found: set[str] = set()
    if persistence.get("aof_last_write_status") == "err" or disk.free < _LEAST_DISK:
        found.add(
            f"no room is left in {data}, so results cannot be kept: free some; the work then goes "
            "on by itself"
        )
    most = memory.get("maxmemory", 0)
    if most and memory["used_memory"] > most * _NEARLY:
        found.add(
            f"the results fill {_NEARLY:.0%} of the {most / 2**30:.1f} GB of memory for them: read "
            "them with `dragoman translate --model`, which removes them, or stop and give another "
            "--data"
        )
    return found
