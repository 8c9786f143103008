"""The memory's keys as the command `dragoman memory` reads and changes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from redis.exceptions import ResponseError

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.operations.digests import DIGEST_BYTES, DigestTable
from dragoman_producer.operations.memory_files import CONFLICT, DUPLICATE, Row
from dragoman_producer.redis_link import RedisLink
from dragoman_schemas import names
from dragoman_schemas.approved import (
    ApprovedTranslation,
    decode_approved,
    encode_approved,
    shard_of,
)

BATCH: Final = 500
"""Entries per round trip of an import or export."""
_COUNT_FIELDS: Final = 1
"""Each hash of the machine's tier has the field `bytes` beside its entries."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Size of one tier. `size` is in bytes, None if Redis does not report it to this user."""

    entries: int
    size: int | None


@dataclass(frozen=True, slots=True)
class Added:
    """What an import changed: new entries, entries with another translation, equal ones."""

    new: int = 0
    replaced: int = 0
    unchanged: int = 0

    def __add__(self, other: Added) -> Added:
        return Added(
            self.new + other.new,
            self.replaced + other.replaced,
            self.unchanged + other.unchanged,
        )


class Seen:
    """Lines of earlier rows, in bounded memory, to find duplicates and conflicts."""

    def __init__(self) -> None:
        self._table = DigestTable()
        self._files: dict[Path, int] = {}

    def close(self) -> None:
        """Delete the temporary database."""
        self._table.close()

    def judge(self, row: Row) -> tuple[str, int] | None:
        """Return the kind of problem and the earlier line; None for a text that is new."""
        entry = row.translation
        if entry is None:
            return None
        digest = entry.field[:DIGEST_BYTES]
        if not (line := self._table.flags(digest)):
            self._table.add(digest, row.line)
            self._table.add(_with_target(entry), row.line)
            return None
        return (DUPLICATE if self._table.flags(_with_target(entry)) else CONFLICT), line


def _with_target(entry: ApprovedTranslation) -> bytes:
    return blake2b(entry.field + entry.target.encode(), digest_size=DIGEST_BYTES).digest()


class MemoryStore:
    """Client side of the memory's keys. Methods may raise StoreUnreachable and StoreRefused."""

    def __init__(self, settings: DragomanSettings) -> None:
        self._link = RedisLink(settings.redis, connect_timeout_s=settings.connect_timeout_s)
        self._keys = names.Keys(settings.redis.key_prefix)

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()

    async def add(self, entries: Sequence[ApprovedTranslation]) -> Added:
        """Write entries, in one round trip. A repetition changes nothing."""
        calls = []
        for entry in entries:
            key, field = self._keys.memory_approved(entry.shard), entry.field
            calls.append([("HGET", key, field), ("HSET", key, field, encode_approved(entry))])
        added = Added()
        for entry, replies in zip(entries, await self._link.send(*calls), strict=True):
            before, _ = map(self._link.checked, replies)
            if before is None:
                added += Added(new=1)
            elif before == encode_approved(entry):
                added += Added(unchanged=1)
            else:
                added += Added(replaced=1)
        return added

    async def entries(self) -> AsyncIterator[ApprovedTranslation | None]:
        """Yield the approved translations; None for each entry that cannot be read."""
        for shard in range(names.MEMORY_SHARDS):
            async for entry in self._shard(shard):
                yield entry

    async def find(self, text: str) -> list[ApprovedTranslation]:
        """Return all approved translations of a text."""
        wanted = text.strip()
        return [
            entry
            async for entry in self._shard(shard_of(wanted))
            if entry is not None and entry.source == wanted
        ]

    async def machine(self) -> Tier:
        """Return the size of the machine's tier."""
        return await self._size(self._machine_keys(), _COUNT_FIELDS)

    async def approved(self) -> Tier:
        """Return the size of the approved tier."""
        return await self._size(self._approved_keys(), 0)

    async def clear(self, *, approved: bool) -> int:
        """Delete the machine's tier, or the approved one; return how many entries it had."""
        tier = await (self.approved() if approved else self.machine())
        keys = self._approved_keys() if approved else self._machine_keys()
        for (reply,) in await self._link.send(*([("UNLINK", key)] for key in keys)):
            self._link.checked(reply)
        return tier.entries

    async def _shard(self, shard: int) -> AsyncIterator[ApprovedTranslation | None]:
        """Yield a shard's entries; HSCAN may repeat one while the hash grows."""
        key, cursor, seen = self._keys.memory_approved(shard), 0, set[bytes]()
        while True:
            cursor, found = await self._link.ask("HSCAN", key, cursor, "COUNT", BATCH)
            for field, value in found.items():
                if field not in seen:
                    seen.add(field)
                    yield decode_approved(value)
            if cursor == 0:
                return

    async def _size(self, keys: Sequence[str], beside: int) -> Tier:
        calls = [[("HLEN", key), ("MEMORY", "USAGE", key)] for key in keys]
        entries, size = 0, 0
        reported = True
        for length, used in await self._link.send(*calls):
            entries += max(0, self._link.checked(length) - beside)
            if isinstance(used, ResponseError):  # a right that this user need not have
                reported = False
            else:
                size += used or 0
        return Tier(entries, size if reported else None)

    def _machine_keys(self) -> list[str]:
        shards = range(names.MEMORY_SHARDS)
        pairs = [(self._keys.memory(one, "new"), self._keys.memory(one, "old")) for one in shards]
        return [key for pair in pairs for key in pair]

    def _approved_keys(self) -> list[str]:
        return [self._keys.memory_approved(shard) for shard in range(names.MEMORY_SHARDS)]


def fields_of(entry: ApprovedTranslation) -> dict[str, Any]:
    """Return an entry as a JSONL line has it."""
    fields = {
        "source_lang": entry.source_lang,
        "target_lang": entry.target_lang,
        "source": entry.source,
        "target": entry.target,
        "context": entry.context,
    }
    return {name: value for name, value in fields.items() if value is not None}
