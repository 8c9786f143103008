"""The memory's keys as the command `dragoman memory` reads and changes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from redis.exceptions import RedisError, ResponseError

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.errors import StoreRefused
from dragoman_producer.operations.digests import DIGEST_BYTES, DigestTable
from dragoman_producer.operations.memory_files import CONFLICT, DUPLICATE, MemoryRow
from dragoman_producer.redis_link import RedisLink, is_wrong_type
from dragoman_schemas import names
from dragoman_schemas.approved import (
    ApprovedTranslation,
    decode_approved,
    encode_approved,
    shard_of,
)

BATCH: Final = 500
"""Rows of an import per round trip."""
_SCANNED_AT_ONCE: Final = 100
"""Entries per reply of an export: up to 64 MiB of the longest texts."""
_LINE_BITS: Final = 40
_COUNT_FIELDS: Final = 1
"""Each hash of the machine's tier has the field `bytes` beside its entries."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Size of one tier. `size` is in bytes, None if Redis does not report it to this user."""

    entries: int
    size: int | None


class Outcome(StrEnum):
    """What became of an entry."""

    NEW = "new"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    BROKEN_KEY = "broken key"
    """Its key is not a hash: another program wrote it."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Added:
    """Outcomes of a batch, in its order, and the error of the first entry that was refused."""

    outcomes: list[Outcome]
    error: StoreRefused | None = None


class EarlierRows:
    """Places of earlier rows, in bounded memory, to find duplicates and conflicts."""

    def __init__(self) -> None:
        self._table = DigestTable()
        self._files: list[Path] = []

    def close(self) -> None:
        """Delete the temporary database."""
        self._table.close()

    def judge(self, row: MemoryRow) -> tuple[str, Path, int] | None:
        """Return the kind of problem and the earlier file and line; None for a text that is new."""
        entry = row.translation
        field = entry.field
        both = blake2b(field + entry.target.encode(), digest_size=DIGEST_BYTES).digest()
        if not (place := self._table.flags(field[:DIGEST_BYTES])):
            self._table.put(field[:DIGEST_BYTES], self._place(row))
            self._table.put(both, 1)
            return None
        kind = DUPLICATE if self._table.flags(both) else CONFLICT
        return kind, self._files[place >> _LINE_BITS], place & (1 << _LINE_BITS) - 1

    def _place(self, row: MemoryRow) -> int:
        """Return a number above 0 for the row's file and line; files come one after another."""
        if not self._files or self._files[-1] != row.path:
            self._files.append(row.path)
        return len(self._files) - 1 << _LINE_BITS | row.line


class MemoryStore:
    """Client side of the memory's keys. Methods may raise StoreUnreachable and StoreRefused.

    `broken_keys` are those that were found not to be hashes; every method goes on without them.
    """

    def __init__(self, settings: DragomanSettings) -> None:
        self.broken_keys: set[str] = set()
        self._link = RedisLink(settings.redis, connect_timeout_s=settings.connect_timeout_s)
        self._keys = names.Keys(settings.redis.key_prefix)

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()

    async def add(self, entries: Sequence[ApprovedTranslation]) -> Added:
        """Write entries, in one round trip. A repetition changes nothing.

        A Redis that refuses some of them, because it is full, has stored the others.
        """
        keys = [self._keys.memory_approved(entry.shard) for entry in entries]
        values = [encode_approved(entry) for entry in entries]
        fields = [entry.field for entry in entries]
        calls = [
            [("HGET", key, field), ("HSET", key, field, value)]
            for key, field, value in zip(keys, fields, values, strict=True)
        ]
        outcomes: list[Outcome] = []
        error: StoreRefused | None = None
        for key, value, replies in zip(keys, values, await self._link.send(*calls), strict=True):
            before, written = replies
            if self._is_broken(key, before):
                outcomes.append(Outcome.BROKEN_KEY)
            elif self._link.checked(before) == value:  # then a refusal changes nothing
                outcomes.append(Outcome.UNCHANGED)
            elif isinstance(written, RedisError):
                error = error or self._link.refusal(written)
                outcomes.append(Outcome.REFUSED)
            else:
                outcomes.append(Outcome.NEW if before is None else Outcome.REPLACED)
        return Added(outcomes, error)

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

    async def remove(self, text: str) -> int:
        """Delete all approved translations of a text; return how many there were."""
        found = await self.find(text)
        calls = [[("HDEL", self._keys.memory_approved(each.shard), each.field)] for each in found]
        for (reply,) in await self._link.send(*calls) if calls else ():
            self._link.checked(reply)
        return len(found)

    async def machine(self) -> Tier:
        """Return the size of the machine's tier."""
        return await self._size(self._machine_keys(), _COUNT_FIELDS)

    async def approved(self) -> Tier:
        """Return the size of the approved tier."""
        return await self._size(self._approved_keys(), 0)

    async def clear(self, *, approved: bool) -> int:
        """Delete the machine's tier, or the approved one; return how many entries it had.

        Keys that are not hashes stay: another program wrote them.
        """
        tier = await (self.approved() if approved else self.machine())
        keys = self._approved_keys() if approved else self._machine_keys()
        keys = [key for key in keys if key not in self.broken_keys]
        for (reply,) in await self._link.send(*([("UNLINK", key)] for key in keys)):
            self._link.checked(reply)
        return tier.entries

    async def _shard(self, shard: int) -> AsyncIterator[ApprovedTranslation | None]:
        """Yield a shard's entries; HSCAN may repeat one while the hash grows."""
        key, cursor, seen = self._keys.memory_approved(shard), 0, set[bytes]()
        while True:
            ((reply,),) = await self._link.send([("HSCAN", key, cursor, "COUNT", _SCANNED_AT_ONCE)])
            if self._is_broken(key, reply):
                return
            cursor, found = self._link.checked(reply)
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
        for key, (length, used) in zip(keys, await self._link.send(*calls), strict=True):
            if self._is_broken(key, length):
                continue
            entries += max(0, self._link.checked(length) - beside)
            if isinstance(used, ResponseError):  # a right that this user need not have
                reported = False
            else:
                size += used or 0
        return Tier(entries, size if reported else None)

    def _is_broken(self, key: str, reply: Any) -> bool:
        """Note the key if the reply says that it is not a hash; return whether it does."""
        broken = is_wrong_type(reply)
        if broken:
            self.broken_keys.add(key)
        return broken

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
