"""Jobs of one document id, and their state as read from Redis."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import redis.asyncio
from job_mix import source

from dragoman_schemas.jobs import DocumentRef, Sampling, TranslationJob
from dragoman_schemas.names import Keys

ENDED = {"completed", "failed", "cancelled", "expired"}
FIELDS = ("status", "result", "deliveries", "started_at")


def made(
    document: str, lengths: Sequence[int], words: int, draw: random.Random
) -> list[TranslationJob]:
    """Return the jobs of one document, each with the given source words and output tokens."""
    return [
        TranslationJob(
            job_id=f"{document}-{number}",
            text=source(words, draw),
            source_lang="en",
            target_lang="de",
            sampling=Sampling(max_tokens=tokens),
            document=DocumentRef(document_id=document, index=number, total=len(lengths)),
        )
        for number, tokens in enumerate(lengths)
    ]


class Store:
    """Reader of the jobs' keys."""

    def __init__(self, url: str) -> None:
        self._redis = redis.asyncio.Redis.from_url(url)
        self._keys = Keys()

    async def status(self, job_id: str) -> str:
        return _text(await self._redis.hget(self._keys.job(job_id), "status"))

    async def read(self, job_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the fields of each key."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hmget(self._keys.job(job_id), FIELDS)
            rows = await pipe.execute()
        return {
            job_id: dict(zip(FIELDS, map(_text, row), strict=True))
            for job_id, row in zip(job_ids, rows, strict=True)
        }

    async def claims(self, job_ids: Sequence[str]) -> int:
        """Count the claims that a stopped worker has left behind."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hkeys(self._keys.job(job_id))
            return sum(name.startswith(b"claim:") for row in await pipe.execute() for name in row)

    async def running(self, job_ids: Sequence[str]) -> int:
        """Count the running jobs."""
        return sum(row["status"] == "running" for row in (await self.read(job_ids)).values())

    async def all_ended(self, job_ids: Sequence[str], timeout_s: float) -> float:
        """Return the seconds until every job has a terminal state."""
        statuses: Counter[str] = Counter()

        async def ended() -> bool:
            rows = await self.read(job_ids)
            statuses.clear()
            statuses.update(row["status"] for row in rows.values())
            return ENDED.issuperset(statuses)

        return await until(ended, timeout_s, lambda: f"the ends, {statuses}")

    async def close(self) -> None:
        await self._redis.aclose()


async def until(
    holds: Callable[[], Awaitable[bool]], timeout_s: float, what: str | Callable[[], str]
) -> float:
    """Return the seconds until a condition holds; exit if it does not in time."""
    started = time.monotonic()
    while not await holds():
        if time.monotonic() - started > timeout_s:
            what = what if isinstance(what, str) else what()
            raise SystemExit(f"{what}: not within {timeout_s:g} s")
        await asyncio.sleep(0.05)
    return time.monotonic() - started


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
