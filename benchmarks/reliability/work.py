"""Parts that the compared programs share: addresses, store and the work per job."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final
from zlib import crc32

from redis.asyncio import BlockingConnectionPool, Redis

KAFKA: Final = os.environ["STORM_KAFKA"]
REDIS: Final = os.environ["STORM_REDIS"]
TOPIC: Final = os.environ["STORM_TOPIC"]
GROUP: Final = os.environ["STORM_GROUP"]
SESSION_TIMEOUT_MS: Final = round(float(os.environ["STORM_SESSION_TIMEOUT_S"]) * 1000)
IN_FLIGHT: Final = int(os.environ.get("STORM_IN_FLIGHT", "256"))
GRACE_S: Final = 10.0

_LATENCY_S = float(os.environ["STORM_LATENCY_S"])
_SPREAD = float(os.environ["STORM_SPREAD"])
_DAY_S = 86_400


def open_store() -> Redis:
    """Return a client that waits for one of 64 connections; the default refuses the 101st."""
    return Redis(connection_pool=BlockingConnectionPool.from_url(REDIS, max_connections=64))


async def translate(store: Redis, job: dict[str, Any]) -> None:
    """Wait for the echo engine's latency of this text, then write the result idempotently.

    A finished job is skipped: the cheap half of what makes redelivery harmless.
    """
    key = f"dragoman:job:{job['job_id']}"
    if await store.hget(key, "status") == b"completed":
        return
    place = crc32(job["text"].encode()) / 0xFFFF_FFFF
    await asyncio.sleep(_LATENCY_S * (1 + _SPREAD * (2 * place - 1)))
    end = {"status": "completed", "text": f"[{job['target_lang']}] {job['text']}"}
    async with store.pipeline(transaction=True) as pipe:
        await pipe.hset(key, mapping=end).hincrby(key, "runs", 1).expire(key, _DAY_S).execute()


def ready() -> None:
    """Print the line that the storm waits for."""
    print("ready", flush=True)
