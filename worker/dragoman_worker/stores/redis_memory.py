"""The translation memory in Redis (docs/reference/memory.md). Trouble with it costs hits alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

from redis.exceptions import InvalidResponse

from dragoman_connections.batching import Batcher
from dragoman_connections.redis_access.calls import Answer, Call, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_schemas import names, scripts
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

RECALL_LIMIT_S: Final = 0.05
"""Time for one batch of look-ups: 500 of them take 12 ms on one core."""
BACKLOG_LIMIT_S: Final = 2.0
"""The same while other jobs look up too: generating their texts again would take longer.

On two busy cores a batch took more than 0.05 s, and 608 of 2,000 known texts were generated again.
"""
MAX_LOOKUPS: Final = 512
"""Look-ups per round trip."""
MAX_QUEUED: Final = 20_000
MAX_QUEUED_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRIES: Final = 512
"""Entries per round trip; the script takes two arguments for each, and Lua 8,000 at most."""
CLOSE_LIMIT_S: Final = 1.0
_ENTRY_BYTES: Final = 96
"""What remember.lua adds to each value, beside an eighth of it."""
_LARGEST_SHARE: Final = 4
"""An entry larger than this share of a hash is not written: it would drop too many others."""
_GRACE_TURNS: Final = 8
"""Turns of the event loop in which a reply that has arrived is read, after a late timer."""

_Place = tuple[int, bytes]


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
        """`limit_s` bounds one batch of look-ups of a single job; the caller closes the servers."""
        self._limit_s = limit_s
        self._asking = 0
        """Jobs that look something up."""
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
        self._asking += 1
        try:
            return await self._batcher.ask(calls)
        except Exception:  # noqa: BLE001  a miss, whatever it was; `_flush` has reported it
            return [None] * len(calls)
        finally:
            self._asking -= 1

    async def _flush(self, requests: Sequence[list[Call]]) -> list[list[Answer] | Exception]:
        """Send the calls of all requests in one round trip."""
        if not self._outages.available:  # since they were queued
            raise TimeoutError
        calls = [call for request in requests for call in request]
        try:
            answers = iter(await _within(self._limits(), self._servers.send(calls)))
        except Exception as error:
            self._outages.failed(error)
            raise
        return [[next(answers) for _ in request] for request in requests]

    def _limits(self) -> Iterator[float]:
        """Yield how long to wait, then how much longer if there is a backlog by then."""
        yield self._limit_s
        if self._asking > 1:
            yield max(0.0, BACKLOG_LIMIT_S - self._limit_s)


def _fields(query: ApprovedQuery) -> list[bytes]:
    text = query.text.strip()
    return lookup_fields(text, query.target_lang, query.source_lang, query.context)


async def _within(
    limits: Iterator[float], sending: Coroutine[Any, Any, list[Answer]]
) -> list[Answer]:
    """Return the answers, also if they arrived in time while the event loop was blocked."""
    task: asyncio.Task[list[Answer]] = asyncio.create_task(sending, name="memory-send")
    try:
        waited = 0.0
        for limit_s in limits:
            waited += limit_s
            await asyncio.wait({task}, timeout=limit_s)
            if task.done():
                return task.result()
        for _ in range(_GRACE_TURNS):
            if task.done():
                return task.result()
            await asyncio.sleep(0)
        raise TimeoutError(f"no answer within {waited:g} s")
    finally:
        task.add_done_callback(_retrieved)
        task.cancel()


def _retrieved(task: asyncio.Task[list[Answer]]) -> None:
    """Retrieve the exception of a look-up that is abandoned, or asyncio would log it."""
    if not task.cancelled():
        task.exception()


# --- writes ---------------------------------------------------------------------------------------


class MemoryWriter:
    """Writes entries in the background; what cannot be written is counted by `lost`."""

    def __init__(
        self,
        servers: Servers,
        keys: names.Keys,
        settings: MemorySettings,
        outages: MemoryOutages,
        *,
        lost: Callable[[float], None],
    ) -> None:
        self._servers = servers
        self._keys = keys
        self._most = hash_bytes(settings.max_mb)
        self._ttl_ms = settings.ttl_s * 1_000
        self._outages = outages
        self._lost = lost
        self._queue: dict[_Place, bytes] = {}
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Entries in the queue."""
        return len(self._queue)

    def add(self, shard: int, field: bytes, value: bytes) -> None:
        """Queue an entry; the last of several for one field is written."""
        if estimated_bytes(value) > self._most // _LARGEST_SHARE:
            return
        place = (shard, field)
        self._bytes += len(value) - len(self._queue.get(place, b""))
        full = len(self._queue) >= MAX_QUEUED or self._bytes > MAX_QUEUED_BYTES
        if full or not self._outages.available:
            self._bytes -= len(value) - len(self._queue.get(place, b""))
            self._lost(1)
            return
        self._queue[place] = value
        if self._task is None:
            self._task = asyncio.create_task(self._write_all(), name="memory-write")

    async def close(self) -> None:
        """Give the queue a second, then drop it."""
        if (task := self._task) is not None:
            await asyncio.wait({task}, timeout=CLOSE_LIMIT_S)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write(self._next_batch())
        finally:
            self._task = None

    def _next_batch(self) -> dict[int, list[bytes]]:
        """Take entries from the queue; return fields and values by shard."""
        batch: dict[int, list[bytes]] = {}
        for shard, field in list(self._queue)[:MAX_ENTRIES]:
            value = self._queue.pop((shard, field))
            self._bytes -= len(value)
            batch.setdefault(shard, []).extend((field, value))
        return batch

    async def _write(self, batch: dict[int, list[bytes]]) -> None:
        calls = [self._call(shard, pairs) for shard, pairs in batch.items()]
        try:
            answers = await self._servers.send(calls)
        except Exception as error:  # noqa: BLE001  entries are lost, whatever it was
            self._outages.failed(error)
            self._lost(sum(len(pairs) // 2 for pairs in batch.values()))
            return
        for pairs, answer in zip(batch.values(), answers, strict=True):
            if isinstance(reply := answer.replies[0], Exception):
                self._lost(len(pairs) // 2)
                self._outages.refused(refusal(reply), "remember")

    def _call(self, shard: int, pairs: list[bytes]) -> Call:
        keys = (self._keys.memory(shard, "new"), self._keys.memory(shard, "old"))
        arguments = (self._most, self._ttl_ms, *pairs)
        return Call([("EVALSHA", scripts.REMEMBER.sha1, 2, *keys, *arguments)])


def hash_bytes(max_mb: int) -> int:
    """Return the most bytes of one hash: of 256 shards, each a newer and an older one."""
    return max_mb * 1_000_000 // (2 * names.MEMORY_SHARDS)


def estimated_bytes(value: bytes) -> int:
    """Return the bytes in Redis of an entry, as remember.lua estimates them."""
    return len(value) + len(value) // 8 + _ENTRY_BYTES
