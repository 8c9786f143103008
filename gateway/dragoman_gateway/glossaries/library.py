"""The glossaries of all keys: a record of the gateway, and a stored glossary per source language.

A record is written before its terms and removed after them. So what a crash leaves has a record,
is listed, and can be removed like any other.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol

from dragoman_gateway.errors import ApiError
from dragoman_gateway.glossaries.entries import Pair, Terms, decoded, encoded, written
from dragoman_gateway.glossaries.records import GlossaryRecord, GlossaryRecords
from dragoman_gateway.glossaries.usable import OWN, UsableGlossary, usable
from dragoman_gateway.keys import Key
from dragoman_gateway.languages import base
from dragoman_producer.errors import DragomanError
from dragoman_producer.operations.glossaries import (
    EncodedTerms,
    GlossaryChanged,
    ReadGlossary,
    Written,
)
from dragoman_schemas.languages import lookup_tags
from dragoman_schemas.wire import now_rfc3339

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCRIPTS: Final[Mapping[str, tuple[str, ...]]] = {"zh": ("zh", "zh-Hant")}
"""Tags of a language's terms: DeepL's dictionaries are of languages, whatever their script."""
_TRIES: Final = 5
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Terms of a glossary from one source language, as they are stored: about a million of them."""
NO_GLOSSARY: Final = "Glossary not found."
NO_DICTIONARY: Final = "No dictionary found for language pair"


class GlossaryStorage(Protocol):
    """What is needed of a GlossaryStore."""

    async def read(self, name: str) -> ReadGlossary | None: ...

    async def read_many(self, glossaries: Sequence[str]) -> list[ReadGlossary | None]: ...

    async def encoded_terms(self, stored: ReadGlossary, tag: str) -> bytes: ...

    async def replace_encoded(
        self,
        name: str,
        stored: ReadGlossary | None,
        source_lang: str | None,
        terms: Mapping[str, EncodedTerms],
    ) -> Written: ...

    async def remove(self, name: str) -> bool: ...


class KeptDictionary(NamedTuple):
    """A dictionary of a glossary. `terms`: how many it has, None until they are stored."""

    pair: Pair
    terms: int | None


@dataclass(frozen=True, slots=True)
class KeptGlossary:
    """A glossary of a key."""

    id: str
    name: str
    created: str
    dictionaries: Sequence[KeptDictionary]


class KeyGlossaries:
    """Keeps glossaries. Every method raises ApiError, and DragomanError without Redis."""

    def __init__(
        self, records: GlossaryRecords, store: GlossaryStorage, *, refresh_s: float
    ) -> None:
        """Workers may use for `refresh_s` what a glossary held before a change."""
        self._records = records
        self._store = store
        self._refresh_s = refresh_s
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By key: a change has all terms of a source language in memory."""

    async def usable(self, key: Key, glossary_id: str, source: str, target: str) -> UsableGlossary:
        """Return the stored glossary to use between two languages. Raises ApiError (404)."""
        if glossary_id in key.glossaries:
            stored = await self._store.read(glossary_id)
            if stored is None:
                raise ApiError(404, NO_GLOSSARY)
        else:
            name = _stored_name(glossary_id, base(source))
            known = _ID.fullmatch(glossary_id) is not None
            if not known or not await self._records.holds(key.id, glossary_id):
                raise ApiError(404, NO_GLOSSARY)
            stored = await self._store.read(name)
        if stored is None or not _serves(stored, source, target):
            raise ApiError(404, NO_DICTIONARY)
        return usable(stored, self._refresh_s)

    async def all(self, key: Key) -> list[KeptGlossary]:
        """Return the glossaries of a key, the oldest first."""
        return await self._kept(await self._records.all(key.id))

    async def get(self, key: Key, glossary_id: str) -> KeptGlossary:
        """Return a glossary of a key."""
        (kept,) = await self._kept([await self._record(key, glossary_id)])
        return kept

    async def create(self, key: Key, name: str, dictionaries: Mapping[Pair, Terms]) -> KeptGlossary:
        """Keep a new glossary. Raises ApiError (456) if the key has as many as it may."""
        for orphan in await self._records.orphans(key.id):
            await self._discard(key.id, orphan)
        if len(await self._records.all(key.id)) >= key.glossaries_max:
            raise ApiError(
                456, f"This key may keep {key.glossaries_max} glossaries: delete one of them."
            )
        record = GlossaryRecord(str(uuid.uuid4()), name, now_rfc3339(), list(dictionaries))
        await self._records.add(key.id, record)
        by_source: dict[str, dict[str, Terms]] = {}
        for pair, terms in dictionaries.items():
            by_source.setdefault(pair.source, {})[pair.target] = terms
        try:
            for source, given in by_source.items():
                await self._change(key, record.id, source, partial(_replaced, given))
        except DragomanError:
            with suppress(DragomanError):
                await self._discard(key.id, record.id)
            raise
        return await self.get(key, record.id)

    async def rename(self, key: Key, glossary_id: str, name: str) -> None:
        """Give a glossary another name."""
        await self._records.rename(key.id, await self._record(key, glossary_id), name)

    async def put(
        self, key: Key, glossary_id: str, pair: Pair, terms: Terms, *, merge: bool = False
    ) -> int:
        """Replace or add a dictionary, or merge terms into it; return how many it then has."""
        record = await self._record(key, glossary_id)
        if pair not in record.pairs:
            await self._records.add_pair(key.id, glossary_id, pair)

        def changed(before: Terms) -> Mapping[str, Terms]:
            return {pair.target: {**before, **terms} if merge else terms}

        needed = pair.target if merge else None
        done = await self._change(key, glossary_id, pair.source, changed, needed)
        if not await self._records.holds(key.id, glossary_id):  # it was removed meanwhile
            await self._store.remove(_stored_name(glossary_id, pair.source))
            await self._discard(key.id, glossary_id)
            raise ApiError(404, NO_GLOSSARY)
        return done.meta.counts[pair.target]

    async def remove_pair(self, key: Key, glossary_id: str, pair: Pair) -> None:
        """Remove a dictionary."""
        record = await self._record(key, glossary_id)
        if pair not in record.pairs:
            raise ApiError(404, NO_DICTIONARY)
        await self._change(key, glossary_id, pair.source, lambda _: {pair.target: {}})
        await self._records.hide_pair(key.id, glossary_id, pair)

    async def remove(self, key: Key, glossary_id: str) -> None:
        """Remove a glossary, also what a crash left of one."""
        if not _ID.fullmatch(glossary_id) or not await self._discard(key.id, glossary_id):
            raise ApiError(404, NO_GLOSSARY)

    async def entries(self, key: Key, glossary_id: str, pair: Pair, form: str) -> str:
        """Return the terms of a dictionary as TSV or CSV."""
        await self._record(key, glossary_id)
        stored = await self._store.read(_stored_name(glossary_id, pair.source))
        if stored is None or not stored.meta.counts.get(pair.target):
            raise ApiError(404, NO_DICTIONARY)
        content = await self._store.encoded_terms(stored, pair.target)
        if not content:  # it was removed meanwhile
            raise ApiError(404, NO_DICTIONARY)
        return await asyncio.to_thread(lambda: written(decoded(content), form))

    async def _record(self, key: Key, glossary_id: str) -> GlossaryRecord:
        known = _ID.fullmatch(glossary_id) is not None
        record = await self._records.find(key.id, glossary_id) if known else None
        if record is None:
            raise ApiError(404, NO_GLOSSARY)
        return record

    async def _kept(self, records: Sequence[GlossaryRecord]) -> list[KeptGlossary]:
        names = {_stored_name(each.id, pair.source) for each in records for pair in each.pairs}
        found = {each.name: each for each in await self._store.read_many(sorted(names)) if each}

        def kept(record: GlossaryRecord, pair: Pair) -> KeptDictionary:
            stored = found.get(_stored_name(record.id, pair.source))
            return KeptDictionary(pair, stored.meta.counts.get(pair.target) if stored else None)

        return [
            KeptGlossary(each.id, each.name, each.created, [kept(each, p) for p in each.pairs])
            for each in records
        ]

    async def _change(
        self,
        key: Key,
        glossary_id: str,
        source: str,
        changed: Callable[[Terms], Mapping[str, Terms]],
        needed: str | None = None,
    ) -> Written:
        """Write the terms of target languages that `changed` returns; keep those of the others.

        It gets the terms stored for `needed`. A language without terms is removed; the key stays,
        because its version must not begin again while workers know an older one.
        """
        name = _stored_name(glossary_id, source)
        async with self._changing[key.id]:
            for _ in range(_TRIES):
                stored = await self._store.read(name)
                held = await self._held(stored)
                terms = await asyncio.to_thread(_changed, held, changed, needed)
                with suppress(GlossaryChanged):
                    return await self._store.replace_encoded(name, stored, source, terms)
        raise ApiError(503, "The glossary is being changed by others. Ask again.", 1)

    async def _held(self, stored: ReadGlossary | None) -> dict[str, EncodedTerms]:
        if stored is None:
            return {}
        return {
            tag: EncodedTerms(await self._store.encoded_terms(stored, tag), count)
            for tag, count in stored.meta.counts.items()
        }

    async def _discard(self, key_id: str, glossary_id: str) -> bool:
        """Remove the terms, then the record."""
        for source in await self._records.sources(key_id, glossary_id):
            await self._store.remove(_stored_name(glossary_id, source))
        return await self._records.remove(key_id, glossary_id)


def _stored_name(glossary_id: str, source: str) -> str:
    return f"{OWN}{glossary_id}.{source}"


def _replaced(given: Mapping[str, Terms], _: Terms) -> Mapping[str, Terms]:
    return given


def _changed(
    held: Mapping[str, EncodedTerms],
    changed: Callable[[Terms], Mapping[str, Terms]],
    needed: str | None,
) -> dict[str, EncodedTerms]:
    """Return all terms of a source language after a change. Raises ApiError (400)."""
    terms = dict(held)
    stored = held.get(needed or "")
    before = decoded(stored.content) if stored and stored.content else {}
    for target, given in changed(before).items():
        terms |= dict.fromkeys(_SCRIPTS.get(target, (target,)), encoded(given))
    if sum(len(each.content) for each in terms.values()) > _MOST_BYTES:
        limit = f"{_MOST_BYTES:,} bytes for a source language"
        raise ApiError(400, f"The glossary would have more than {limit}: split it.")
    return {tag: each for tag, each in terms.items() if each.size}


def _serves(stored: ReadGlossary, source: str, target: str) -> bool:
    """Return whether a stored glossary has terms between two languages."""
    meta = stored.meta
    fits = meta.source_lang is None or base(meta.source_lang) == base(source)
    return fits and any(meta.counts.get(tag) for tag in lookup_tags(target))
