"""Stored glossaries in Redis: read, replaced by one script, listed and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.errors import DragomanError
from dragoman_producer.redis_link import RedisLink, is_wrong_type
from dragoman_schemas import names, scripts
from dragoman_schemas.glossaries import (
    GLOSSARY_NAME,
    MOST_TERM_BYTES,
    MOST_TERMS,
    GlossaryEntry,
    GlossaryMeta,
    UnreadableGlossary,
    decode_meta,
    decode_terms,
    digest_of,
    encode_meta,
    encode_terms,
    fields_of,
)
from dragoman_schemas.wire import now_rfc3339

MOST_BYTES: Final = 256 * 1024 * 1024
"""All terms of a glossary as JSON: they reach Redis in one command."""


class GlossaryError(DragomanError):
    """A glossary cannot be read or changed as asked."""


class GlossaryChanged(GlossaryError):
    """Another command changed the glossary since it was read."""


class EncodedTerms(NamedTuple):
    """The terms for one target language, as JSON."""

    content: bytes
    size: int
    """Number of terms."""


@dataclass(frozen=True, slots=True)
class ReadGlossary:
    """A glossary as it was read: `raw` is the field `meta`, byte by byte."""

    name: str
    raw: bytes
    meta: GlossaryMeta


@dataclass(frozen=True, slots=True)
class Written:
    """A glossary after `add`. `changed`: it was written; `removed`: languages that it lost."""

    meta: GlossaryMeta
    changed: bool
    removed: tuple[str, ...] = ()


class GlossaryStore:
    """Client side of the glossaries' keys. Every method may raise StoreUnreachable."""

    def __init__(self, settings: DragomanSettings) -> None:
        self._link = RedisLink(settings.redis, connect_timeout_s=settings.connect_timeout_s)
        self._keys = names.Keys(settings.redis.key_prefix)

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()

    async def read(self, name: str) -> ReadGlossary | None:
        """Return a glossary without its terms, None if there is none. Raises GlossaryError."""
        raw = await self._ask(name, "HGET", self._keys.glossary(name), names.FIELD_META)
        if raw is None:
            return None
        try:
            return ReadGlossary(name, raw, decode_meta(raw))
        except UnreadableGlossary as error:
            raise _broken(name, error) from None

    async def read_many(self, glossaries: Sequence[str]) -> list[ReadGlossary | None]:
        """Return glossaries without their terms, None for those that are missing or unreadable."""
        calls = [[("HGET", self._keys.glossary(name), names.FIELD_META)] for name in glossaries]
        replies = await self._link.send(*calls) if calls else []
        return [_readable(name, reply) for name, (reply,) in zip(glossaries, replies, strict=True)]

    async def terms(self, stored: ReadGlossary, tag: str) -> list[GlossaryEntry]:
        """Return the terms for a target tag that `meta` counts. Raises GlossaryError."""
        try:
            return list(decode_terms(await self.encoded_terms(stored, tag)))
        except UnreadableGlossary as error:
            raise _broken(stored.name, error) from None

    async def encoded_terms(self, stored: ReadGlossary, tag: str) -> bytes:
        """Return the terms for a target tag that `meta` counts, as JSON. Raises GlossaryError."""
        key = self._keys.glossary(stored.name)
        found = await self._ask(stored.name, "HGET", key, names.glossary_terms(tag))
        return found or b""

    async def replace(
        self,
        name: str,
        stored: ReadGlossary | None,
        source_lang: str | None,
        terms: Mapping[str, Sequence[GlossaryEntry]],
    ) -> Written:
        """Replace all terms, unless the glossary changed since `stored` was read.

        Equal terms are not written again. Raises GlossaryError.
        """
        found = {
            tag: EncodedTerms(encode_terms(entries), len(entries)) for tag, entries in terms.items()
        }
        return await self.replace_encoded(name, stored, source_lang, found)

    async def replace_encoded(
        self,
        name: str,
        stored: ReadGlossary | None,
        source_lang: str | None,
        terms: Mapping[str, EncodedTerms],
    ) -> Written:
        """Replace all terms as `replace` does. Raises GlossaryError."""
        _check_sizes(terms)
        found = {tag: each.content for tag, each in terms.items()}
        digest, now = digest_of(source_lang, found), now_rfc3339()
        if stored is not None and stored.meta.digest == digest:
            return Written(stored.meta, changed=False)
        meta = GlossaryMeta(
            version=1 if stored is None else stored.meta.version + 1,
            digest=digest,
            source_lang=source_lang,
            counts={tag: each.size for tag, each in sorted(terms.items())},
            created_at=now if stored is None else stored.meta.created_at,
            updated_at=now,
        )
        await self._write(name, stored, meta, found)
        removed = sorted(stored.meta.counts.keys() - terms.keys()) if stored else ()
        return Written(meta, changed=True, removed=tuple(removed))

    async def names(self) -> list[str]:
        """Return the names of all glossaries, sorted."""
        prefix = self._keys.glossary("")
        keys = await self._link.keys(prefix)
        found = (key.decode(errors="replace").removeprefix(prefix) for key in keys)
        return sorted(name for name in found if GLOSSARY_NAME.fullmatch(name))

    async def remove(self, name: str) -> bool:
        """Remove a glossary; return whether there was one. Jobs that name it fail from then on."""
        key = self._keys.glossary(name)
        existed: int = await self._link.ask("EXISTS", key)  # a repeated DEL could not report it
        await self._link.ask("DEL", key)
        return existed == 1

    async def _ask(self, name: str, *command: Any) -> Any:
        ((reply,),) = await self._link.send([command])
        if is_wrong_type(reply):
            raise _broken(name, "its key is not a hash")
        return self._link.checked(reply)

    async def _write(
        self, name: str, stored: ReadGlossary | None, meta: GlossaryMeta, terms: dict[str, bytes]
    ) -> None:
        arguments = scripts.glossary_args(
            read=stored.raw if stored else None, meta=encode_meta(meta), fields=fields_of(terms)
        )
        key = self._keys.glossary(name)
        reply = await self._ask(name, "EVALSHA", scripts.GLOSSARY.sha1, 1, key, *arguments)
        if not scripts.parse_glossary(reply).written:
            raise GlossaryChanged(
                f"glossary {name}: another command changed it meanwhile, and nothing was written; "
                "run the command again"
            )


def merged(
    stored: Sequence[GlossaryEntry], added: Sequence[GlossaryEntry]
) -> tuple[list[GlossaryEntry], int]:
    """Return the stored terms with the added ones, and how many of those replace a stored one."""
    terms = {_key(entry): entry for entry in stored}
    replaced = sum(terms.get(_key(entry), entry) != entry for entry in added)
    terms.update((_key(entry), entry) for entry in added)
    return list(terms.values()), replaced


def _key(entry: GlossaryEntry) -> tuple[bool, str]:
    exact = entry.case_sensitive
    return exact, entry.source if exact else entry.source.casefold()


def _check_sizes(terms: Mapping[str, EncodedTerms]) -> None:
    for tag, (content, count) in terms.items():
        if count > MOST_TERMS:
            raise GlossaryError(f"{count:,} terms for {tag}; {MOST_TERMS:,} are allowed")
        if len(content) > MOST_TERM_BYTES:
            size = f"{len(content):,} bytes for {tag}"
            raise GlossaryError(f"{size}; {MOST_TERM_BYTES:,} are allowed: split the glossary")
    if sum(len(each.content) for each in terms.values()) > MOST_BYTES:
        raise GlossaryError(f"more than {MOST_BYTES:,} bytes in all: split the glossary")


def _readable(name: str, reply: Any) -> ReadGlossary | None:
    if not isinstance(reply, bytes):
        return None
    try:
        return ReadGlossary(name, reply, decode_meta(reply))
    except UnreadableGlossary:
        return None


def _broken(name: str, error: UnreadableGlossary | str) -> GlossaryError:
    return GlossaryError(f"glossary {name}: {error}; `dragoman glossary remove {name}` deletes it")
