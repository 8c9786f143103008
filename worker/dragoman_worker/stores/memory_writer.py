"""Queue of writes to the memory's machine tier: bounded, and never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dragoman_connections.redis_access.calls import Call, Servers
from dragoman_schemas import names, scripts
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.memory_outages import MemoryOutages, refusal

MAX_QUEUED: Final = 20_000
MAX_QUEUED_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRIES: Final = 512
"""Entries per round trip; the script takes two arguments for each, and Lua 8,000 at most."""
CLOSE_LIMIT_S: Final = 1.0
_ENTRY_BYTES: Final = 96
"""What remember.lua adds to each value, beside an eighth of it."""
_LARGEST_SHARE: Final = 4
"""An entry larger than this share of a hash is not written: it would drop too many others."""

_Place = tuple[int, bytes]


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
