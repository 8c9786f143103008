"""What the gateway keeps of glossaries, in this process: its records, and the stored glossaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman_producer.operations.glossaries import (
    EncodedTerms,
    GlossaryChanged,
    ReadGlossary,
    Written,
)
from dragoman_schemas.glossaries import (
    GlossaryEntry,
    GlossaryMeta,
    digest_of,
    encode_meta,
    encode_terms,
)
from dragoman_schemas.wire import now_rfc3339


class HashesInMemory:
    """Answers the commands on hashes that the records need."""

    def __init__(self) -> None:
        self.hashes: dict[str, dict[bytes, bytes]] = {}

    async def ask(self, *command: Any) -> Any:
        """Answer HGET, HGETALL, HSET and HDEL."""
        name, key, *rest = command
        fields = self.hashes.setdefault(key, {})
        given = [each.encode() for each in rest]
        if name == "HGET":
            return fields.get(given[0])
        if name == "HGETALL":
            return dict(fields)
        if name == "HSET":
            fields.update(zip(given[::2], given[1::2], strict=True))
        else:
            assert name == "HDEL"
            for each in given:
                fields.pop(each, None)
        return len(given)


class GlossariesInMemory:
    """Stored glossaries as GlossaryStore keeps them."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[ReadGlossary, dict[str, bytes]]] = {}
        self.fails: Exception | None = None
        """What each further write raises."""

    def add(self, name: str, source: str | None, terms: Mapping[str, Mapping[str, str]]) -> None:
        """Store a glossary as its command does."""
        found = {
            tag: encode_terms(GlossaryEntry(*each) for each in _entries(given))
            for tag, given in terms.items()
        }
        self._store(name, source, {t: EncodedTerms(found[t], len(terms[t])) for t in terms})

    async def read(self, name: str) -> ReadGlossary | None:
        """See GlossaryStorage."""
        return self.found[name][0] if name in self.found else None

    async def read_many(self, glossaries: Sequence[str]) -> list[ReadGlossary | None]:
        """See GlossaryStorage."""
        return [await self.read(each) for each in glossaries]

    async def encoded_terms(self, stored: ReadGlossary, tag: str) -> bytes:
        """See GlossaryStorage."""
        return self.found[stored.name][1].get(tag, b"")

    async def replace_encoded(
        self,
        name: str,
        stored: ReadGlossary | None,
        source_lang: str | None,
        terms: Mapping[str, EncodedTerms],
    ) -> Written:
        """See GlossaryStorage."""
        if self.fails is not None:
            raise self.fails
        held = await self.read(name)
        if held != stored:
            raise GlossaryChanged("changed meanwhile")
        return Written(self._store(name, source_lang, terms), changed=True)

    async def remove(self, name: str) -> bool:
        """See GlossaryStorage."""
        return self.found.pop(name, None) is not None

    def _store(
        self, name: str, source: str | None, terms: Mapping[str, EncodedTerms]
    ) -> GlossaryMeta:
        before = self.found[name][0].meta if name in self.found else None
        found = {tag: each.content for tag, each in terms.items()}
        now = now_rfc3339()
        meta = GlossaryMeta(
            version=before.version + 1 if before else 1,
            digest=digest_of(source, found),
            source_lang=source,
            counts={tag: each.size for tag, each in terms.items()},
            created_at=before.created_at if before else now,
            updated_at=now,
        )
        self.found[name] = (ReadGlossary(name, encode_meta(meta), meta), found)
        return meta


def _entries(terms: Mapping[str, str]) -> list[tuple[str, tuple[str]]]:
    return [(source, (target,)) for source, target in terms.items()]
