"""What the gateway keeps of a key's glossaries, beside their terms: one hash in Redis per key.

The field `<id>` has name and time of a glossary; a field `<id>:<source>:<target>` for each of its
dictionaries tells their order. Each change is one command, so none can undo another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dragoman_gateway.glossaries.entries import Pair
from dragoman_schemas.names import Keys

_REMOVED: Final = "-"
"""The order of a dictionary that was removed: its source language may still have a key."""


class AskLink(Protocol):
    """What is needed of a RedisLink."""

    async def ask(self, *command: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class GlossaryRecord:
    """A glossary of a key."""

    id: str
    name: str
    created: str
    pairs: Sequence[Pair]
    """Of its dictionaries, in order."""


class GlossaryRecords:
    """Reads and changes the hashes. Every method may raise StoreUnreachable and StoreRefused."""

    def __init__(self, link: AskLink, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    async def all(self, key_id: str) -> list[GlossaryRecord]:
        """Return all glossaries of a key, the oldest first."""
        fields = await self._fields(key_id)
        found = [_record(each, fields) for each in fields if ":" not in each]
        return sorted(found, key=lambda each: (each.created, each.id))

    async def find(self, key_id: str, glossary_id: str) -> GlossaryRecord | None:
        """Return a glossary of a key."""
        fields = await self._fields(key_id)
        return _record(glossary_id, fields) if glossary_id in fields else None

    async def holds(self, key_id: str, glossary_id: str) -> bool:
        """Return whether a key has a glossary."""
        return await self._link.ask("HGET", self._name(key_id), glossary_id) is not None

    async def add(self, key_id: str, record: GlossaryRecord) -> None:
        """Add a glossary with its dictionaries, or give one another name."""
        about = json.dumps({"name": record.name, "created": record.created}, ensure_ascii=False)
        fields = [record.id, about]
        for order, pair in enumerate(record.pairs):
            fields += [_field(record.id, pair), str(order)]
        await self._link.ask("HSET", self._name(key_id), *fields)

    async def rename(self, key_id: str, record: GlossaryRecord, name: str) -> None:
        """Give a glossary another name."""
        await self.add(key_id, GlossaryRecord(record.id, name, record.created, ()))

    async def add_pair(self, key_id: str, glossary_id: str, pair: Pair) -> None:
        """Add a dictionary behind the others."""
        order = str(time.time_ns())
        await self._link.ask("HSET", self._name(key_id), _field(glossary_id, pair), order)

    async def hide_pair(self, key_id: str, glossary_id: str, pair: Pair) -> None:
        """Remove a dictionary, but remember its source language for `sources`."""
        await self._link.ask("HSET", self._name(key_id), _field(glossary_id, pair), _REMOVED)

    async def sources(self, key_id: str, glossary_id: str) -> set[str]:
        """Return every source language that a glossary has or had."""
        fields = await self._fields(key_id)
        return {each.split(":")[1] for each in fields if each.startswith(f"{glossary_id}:")}

    async def remove(self, key_id: str, glossary_id: str) -> bool:
        """Remove all of a glossary; return whether there was any of it."""
        fields = [
            each
            for each in await self._fields(key_id)
            if each == glossary_id or each.startswith(f"{glossary_id}:")
        ]
        if fields:
            await self._link.ask("HDEL", self._name(key_id), *fields)
        return bool(fields)

    async def orphans(self, key_id: str) -> set[str]:
        """Return ids of which only dictionaries are left: removed while one was being added."""
        fields = await self._fields(key_id)
        return {each.split(":")[0] for each in fields} - fields.keys()

    async def _fields(self, key_id: str) -> dict[str, str]:
        found: dict[bytes, bytes] = await self._link.ask("HGETALL", self._name(key_id))
        return {name.decode(): value.decode() for name, value in found.items()}

    def _name(self, key_id: str) -> str:
        return f"{self._keys.prefix}gateway:glossaries:{key_id}"


def _field(glossary_id: str, pair: Pair) -> str:
    return f"{glossary_id}:{pair.source}:{pair.target}"


def _record(glossary_id: str, fields: dict[str, str]) -> GlossaryRecord:
    about = json.loads(fields[glossary_id])
    start = f"{glossary_id}:"
    ordered = sorted(
        (int(order), field)
        for field, order in fields.items()
        if field.startswith(start) and order != _REMOVED
    )
    pairs = [Pair(*field.removeprefix(start).split(":")) for _, field in ordered]
    return GlossaryRecord(glossary_id, about["name"], about["created"], pairs)
