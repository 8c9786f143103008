"""Segments as items of jobs: what is sent of them, and how many go into one job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman_producer.runs.stored_terms import StoredTerms
from dragoman_text.sentences import packed, split_sentences
from dragoman_text.terms import Term, TermIndex

JOB_SEGMENTS: Final = 64
JOB_BYTES: Final = 16 * 1024
MOST_TERMS: Final = 200
"""Glossary terms, and texts to keep, of one job at most, by the contract."""
_CONTEXT_BYTES: Final = 8 * 1024
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode


class SegmentPart(NamedTuple):
    """A segment, or a piece of one that is too long for a job."""

    digest: bytes
    text: str
    before: str = ""
    """Blanks between the part before and this one."""


class Glossary:
    """The terms of a run that occur in a text: of glossaries, of a file and stored, and to keep."""

    def __init__(
        self,
        terms: Mapping[str, str],
        stored: StoredTerms | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        self._terms = terms
        self._keep = keep
        self.may_keep_too_many = len(keep) > MOST_TERMS
        """Whether more texts to keep may occur in a job than it can have."""
        self._stored = stored
        self._index = TermIndex([Term(source, (target,)) for source, target in terms.items()])

    def found(self, text: str) -> dict[str, str]:
        """Return the terms of the file that occur in a text, with their targets."""
        if not self._terms:
            return {}
        sources = {each.term.source for each in self._index.occurrences(text)}
        return {source: self._terms[source] for source in sorted(sources)}

    def kept(self, text: str) -> list[str]:
        """Return the texts to keep that are in a text, in their order."""
        return [each for each in self._keep if each in text]

    def found_stored(self, text: str) -> list[str]:
        """Return the digests of the stored terms that occur in a text."""
        return self._stored.found(text) if self._stored is not None else []

    def digest(self) -> list[object]:
        """Return what changes with any term."""
        return [dict(self._terms), self._stored.digest if self._stored is not None else None]


def parts(
    text: str, context: str | None, max_chars: int | None, glossary: Glossary, lang: str | None
) -> Iterator[SegmentPart]:
    """Yield the parts of a segment; joined with the blanks before them they are its text.

    Equal parts have equal digests: of the text, its context and limit, and the glossary terms in
    it, so that another glossary asks again for those texts alone that it concerns.
    """
    for before, part in _pieces(text, lang):
        terms, stored = glossary.found(part), glossary.found_stored(part)
        more = "null,null,{}"  # what JSON makes of none of them, in a tenth of the time
        if terms or context is not None or max_chars is not None:
            more = f"{_ENCODE(context)},{_ENCODE(max_chars)},{_ENCODE(terms)}"
        if stored:
            more += f",{_ENCODE(stored)}"
        key = f"[{_ENCODE(part)},{more}]".encode()
        yield SegmentPart(hashlib.blake2b(key, digest_size=16).digest(), part, before)


def _pieces(text: str, lang: str | None) -> Iterator[tuple[str, str]]:
    if _size(text) <= JOB_BYTES:
        yield "", text
        return
    blanks = ""
    sentences = split_sentences(text, lang or "en")
    for piece in packed(sentences, lambda some: _size(some) <= JOB_BYTES):
        core = piece.strip()
        if not core:
            blanks += piece
            continue
        start = piece.index(core)
        yield blanks + piece[:start], core
        blanks = piece[start + len(core) :]
    if blanks:
        yield blanks, ""


def cut_context(context: str | None) -> str | None:
    """Return a context of at most the size that the contract allows."""
    if context is None or _size(context) <= _CONTEXT_BYTES:
        return context
    return context.encode()[:_CONTEXT_BYTES].decode(errors="ignore")


class WaitingSegment(NamedTuple):
    """A stored segment that is to be translated."""

    segment: int
    text: str
    context: str | None = None
    max_chars: int | None = None

    def field(self) -> str | dict[str, Any]:
        """Return the item of a job."""
        if self.context is None and self.max_chars is None:
            return self.text
        more = {"context": self.context, "max_chars": self.max_chars}
        given = {name: value for name, value in more.items() if value is not None}
        return {"text": self.text, **given}


def batches(items: Iterable[WaitingSegment], glossary: Glossary) -> Iterator[list[WaitingSegment]]:
    """Yield the items of each job: up to 64, 16 KiB and 200 terms of each kind, in their order."""
    some: list[WaitingSegment] = []
    size = 0
    terms, kept = set[str](), set[str]()
    for item in items:
        new = glossary.found(item.text).keys()
        more = glossary.kept(item.text) if glossary.may_keep_too_many else ()
        weight = _size(item.text)
        most = max(len(terms | new) if new else 0, len(kept.union(more)) if more else 0)
        full = len(some) == JOB_SEGMENTS or size + weight > JOB_BYTES or most > MOST_TERMS
        if some and full:
            yield some
            some, size, terms, kept = [], 0, set(), set()
        some.append(item)
        size += weight
        terms.update(new)
        kept.update(more)
    if some:
        yield some


def terms_of(items: Sequence[WaitingSegment], glossary: Glossary) -> dict[str, str]:
    """Return the glossary of a job."""
    found: dict[str, str] = {}
    for item in items:
        found |= glossary.found(item.text)
    return dict(sorted(found.items())[:MOST_TERMS])


def kept_of(items: Sequence[WaitingSegment], glossary: Glossary) -> list[str]:
    """Return the texts to keep of a job: those that occur in it."""
    return glossary.kept("\n".join(item.text for item in items))[:MOST_TERMS]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
