"""Workers that announce themselves in the hash `dragoman:workers`: hints, never the truth."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime
from typing import Final, NamedTuple

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.errors import DragomanError
from dragoman_producer.redis_link import RedisLink
from dragoman_schemas.jobs import DEFAULT_TTL_S
from dragoman_schemas.names import Keys

_LIVE_S: Final = 30.0
_PATIENCE_S: Final = 1.0
"""For a hint nobody waits."""


class LiveWorker(NamedTuple):
    """A replica that said something within the last 30 seconds."""

    replica: str
    model: str | None
    jobs_per_s: float
    languages: tuple[str, ...] | None = None
    """Base languages of its profile; None: any."""
    formality: bool = False
    """Whether its profile takes a register."""
    topics: tuple[str, ...] = ()
    has_memory: bool = True
    """Whether it reads the translation memory; True if it does not say."""


async def live_workers(settings: DragomanSettings) -> list[LiveWorker]:
    """Return the replicas that live; none if Redis cannot be reached, or refuses."""
    link = RedisLink(settings.redis, connect_timeout_s=_PATIENCE_S)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            found = await link.ask("HGETALL", Keys(settings.redis.key_prefix).workers)
    except (DragomanError, TimeoutError):
        return []
    finally:
        await link.close()
    fields = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
    made = (_worker(replica, value, time.time()) for replica, value in fields)
    return sorted((each for each in made if each is not None), key=lambda each: each.replica)


def outlasting(seconds: float, rate_of: str, ttl_s: int = DEFAULT_TTL_S) -> str | None:
    """Return what to tell of work that takes longer than its results are kept; None if it is not.

    `rate_of` says whose rate `seconds` is known from.
    """
    if seconds <= ttl_s:
        return None
    kept = f"results are kept for {ttl_s / 3600:,.3g} h"
    return f"at the rate of {rate_of} this takes about {seconds / 3600:,.3g} h, and {kept}"


def _worker(replica: bytes, value: bytes, now: float) -> LiveWorker | None:
    """Return the worker of a field; None if it is gone, or says nothing readable."""
    try:
        said = json.loads(value)
        seen = datetime.fromisoformat(said["seen"]).timestamp()
        rate, model = max(0.0, float(said.get("jobs_per_s") or 0)), said.get("model")
        languages, topics = said.get("languages"), said.get("topics") or ()
        listed = None if languages is None else tuple(map(str, languages))
        has_memory = said.get("memory") is not False
        formality, read = bool(said.get("formality")), tuple(map(str, topics))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None
    if now - seen > _LIVE_S:
        return None
    name = replica.decode(errors="replace")
    return LiveWorker(
        name, str(model) if model else None, rate, listed, formality, read, has_memory
    )
