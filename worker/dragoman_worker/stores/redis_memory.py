"""The translation memory in Redis (docs/reference/memory.md). Trouble with it costs hits alone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from redis.exceptions import InvalidResponse

from dragoman_connections.batching import Batcher
from dragoman_connections.redis_access.calls import Answer, Call, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_schemas import names
from dragoman_schemas.approved import decode_approved, lookup_fields, shard_of
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import ApprovedQuery, Remembered
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.memory_outages import MemoryOutages, refusal
from dragoman_worker.stores.memory_values import (
    approved_answer,
    decode_value,
    encode_value,
    shard_and_field,
)
from dragoman_worker.stores.memory_writer import MemoryWriter

RECALL_LIMIT_S: Final = 0.05
"""Time for one batch of look-ups: 500 of them take 12 ms on one core."""
MAX_LOOKUPS: Final = 512
"""Look-ups per round trip."""
_GRACE_TURNS: Final = 8
"""Turns of the event loop in which a reply that has arrived is read, after a late timer."""


class RedisMemory:
    """The Memory port. Concurrent look-ups share round trips; writes wait in a bounded queue.

    Look-ups and writes have one connection of the replica's pool each: a slow one delays no claim.
    While Redis does not answer, look-ups return at once and a task tries to reach it. Event loop
    only.
    """

    def __init__(
        self,
        redis: RedisSettings,
        servers: Servers,
        settings: MemorySettings,
        metrics: Metrics,
        *,
        limit_s: float = RECALL_LIMIT_S,
    ) -> None:
        """`limit_s` bounds one batch of look-ups; the caller closes the servers."""
        self._limit_s = limit_s
        self._keys = names.Keys(redis.key_prefix)
        self._servers = servers
        self._outages = MemoryOutages(self._servers)
        self._writer = MemoryWriter(
            servers,
            self._keys,
            settings,
            self._outages,
            lost=metrics.memory_by_result["error"].inc,
        )
        self._batcher = Batcher[list[Call], list[Answer]](
            self._flush, at_most=MAX_LOOKUPS, name="memory-recall", weigh=len
        )
        counts = metrics.memory_by_result
        self._hits, self._misses, self._errors = counts["hit"], counts["miss"], counts["error"]

    async def start(self) -> None:
        """Connect. A Redis that does not answer costs a warning; it is tried again."""
        await self._outages.start()

    async def close(self) -> None:
        """Write what waits, within a second."""
        await self._writer.close()
        await self._batcher.close()
        await self._outages.close()

    @property
    def waiting(self) -> int:
        """Entries that are not being written yet."""
        return self._writer.waiting

    async def recall(self, keys: Sequence[bytes]) -> Sequence[Remembered | None]:
        """See Memory. What is found in the older hash is written to the newer one again."""
        places = [shard_and_field(key) for key in keys]
        calls = [self._both(shard, field) for shard, field in places]
        answers = await self._ask(calls)
        return [self._recalled(*pair) for pair in zip(places, answers, strict=True)]

    async def approved(self, queries: Sequence[ApprovedQuery]) -> Sequence[Remembered | None]:
        """See Memory. Blanks around the text are those of the item."""
        answers = await self._ask([self._approved_call(query) for query in queries])
        return [self._approved(*pair) for pair in zip(queries, answers, strict=True)]

    def remember(self, key: bytes, translation: Remembered) -> None:
        """See Memory."""
        shard, field = shard_and_field(key)
        self._writer.add(shard, field, encode_value(translation))

    # --- look-ups ---------------------------------------------------------------------------------

    def _both(self, shard: int, field: bytes) -> Call:
        new, old = self._keys.memory(shard, "new"), self._keys.memory(shard, "old")
        return Call([("HGET", new, field), ("HGET", old, field)])

    def _recalled(self, place: tuple[int, bytes], answer: Answer | None) -> Remembered | None:
        values = self._values(answer, bytes)
        if values is None:
            return None
        value = values[0] if values[0] is not None else values[1]
        if value is None:
            self._misses.inc()
            return None
        found = decode_value(value)
        (self._errors if found is None else self._hits).inc()
        if found is not None and values[0] is None:
            self._writer.add(*place, value)
        return found

    def _approved_call(self, query: ApprovedQuery) -> Call:
        key = self._keys.memory_approved(shard_of(query.text.strip()))
        return Call([("HMGET", key, *_fields(query))])

    def _approved(self, query: ApprovedQuery, answer: Answer | None) -> Remembered | None:
        values = self._values(answer, list)
        held = [at for at in enumerate(values[0]) if isinstance(at[1], bytes)] if values else []
        if not held:
            return None
        number, value = held[0]
        found = decode_approved(value)
        if found is None or found.field != _fields(query)[number]:  # under another one's field
            self._errors.inc()
            return None
        return approved_answer(query, found)

    def _values(self, answer: Answer | None, kind: type) -> list[Any] | None:
        """Return the replies, None if there are none of `kind`; that is counted and reported."""
        if answer is None:
            self._errors.inc()
            return None
        wrong = next((one for one in answer.replies if not isinstance(one, kind | None)), None)
        if wrong is None:
            return answer.replies
        self._errors.inc()
        error = wrong if isinstance(wrong, Exception) else InvalidResponse()
        self._outages.refused(refusal(error), "recall")
        return None

    async def _ask(self, calls: list[Call]) -> Sequence[Answer | None]:
        if not calls or not self._outages.available:
            return [None] * len(calls)
        try:
            return await self._batcher.ask(calls)
        except Exception:  # noqa: BLE001  a miss, whatever it was; `_flush` has reported it
            return [None] * len(calls)

    async def _flush(self, requests: Sequence[list[Call]]) -> list[list[Answer] | Exception]:
        """Send the calls of all requests in one round trip."""
        if not self._outages.available:  # since they were queued
            raise TimeoutError
        calls = [call for request in requests for call in request]
        try:
            answers = iter(await _within(self._limit_s, self._servers.send(calls)))
        except Exception as error:
            self._outages.failed(error)
            raise
        return [[next(answers) for _ in request] for request in requests]


def _fields(query: ApprovedQuery) -> list[bytes]:
    text = query.text.strip()
    return lookup_fields(text, query.target_lang, query.source_lang, query.context)


async def _within(limit_s: float, sending: Coroutine[Any, Any, list[Answer]]) -> list[Answer]:
    """Return the answers, also if they arrived in time while the event loop was blocked."""
    task: asyncio.Task[list[Answer]] = asyncio.create_task(sending, name="memory-send")
    try:
        await asyncio.wait({task}, timeout=limit_s)
        for _ in range(_GRACE_TURNS):
            if task.done():
                return task.result()
            await asyncio.sleep(0)
        raise TimeoutError(f"no answer within {limit_s:g} s")
    finally:
        task.add_done_callback(_retrieved)
        task.cancel()


def _retrieved(task: asyncio.Task[list[Answer]]) -> None:
    """Retrieve the exception of a look-up that is abandoned, or asyncio would log it."""
    if not task.cancelled():
        task.exception()
