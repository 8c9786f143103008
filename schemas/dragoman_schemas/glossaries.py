"""Stored glossaries: the fields of their hash in Redis, their limits, and the bytes of both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dragoman_schemas.approved import is_utf8
from dragoman_schemas.languages import normalise
from dragoman_schemas.names import glossary_terms

MOST_TERMS: Final = 100_000
"""Terms of one glossary for one target language."""
MOST_TERM_BYTES: Final = 64 * 1024 * 1024
"""Size of the terms for one target language, as JSON; 100,000 ordinary terms take about 6 MB."""
LONGEST_TERM: Final = 200
"""Characters of a term, as in a job's own `glossary`."""
LONGEST_NOTE: Final = 1_000
MOST_TARGETS: Final = 32
"""Accepted translations of one term."""
MOST_META_BYTES: Final = 64 * 1024
"""Size of the field `meta`, which is parsed on the worker's event loop."""
GLOSSARY_NAME: Final = re.compile(r"[A-Za-z0-9._:\-]{1,128}")

_BETWEEN: Final = re.compile(r"[ \t\r\n]*([,\]])[ \t\r\n]*")
_OPENING: Final = re.compile(r"[ \t\r\n]*\[[ \t\r\n]*")


class UnreadableGlossary(ValueError):
    """The hash does not hold what this version writes; the message quotes no term."""


class GlossaryEntry(NamedTuple):
    """One term: any of `targets` complies, the first is asked for."""

    source: str
    targets: tuple[str, ...]
    case_sensitive: bool = False
    note: str | None = None


class GlossaryMeta(BaseModel):
    """The field `meta`: what a reader compares to find out whether the terms changed."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Annotated[int, Field(ge=1)]
    """Counts the changes; begins at 1 again after a removal."""
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of the source language and of all terms (`digest_of`)."""
    source_lang: Annotated[str, AfterValidator(normalise)] | None = None
    counts: dict[str, Annotated[int, Field(ge=0, le=MOST_TERMS)]]
    """Terms by target language."""
    created_at: str
    updated_at: str


def encode_meta(meta: GlossaryMeta) -> bytes:
    """Return the bytes of the field `meta`."""
    return meta.model_dump_json().encode()


def decode_meta(value: bytes) -> GlossaryMeta:
    """Return the field `meta`. Raises UnreadableGlossary."""
    if len(value) > MOST_META_BYTES:
        raise UnreadableGlossary(f"its field meta has more than {MOST_META_BYTES:,} bytes")
    try:
        return GlossaryMeta.model_validate_json(value)
    except ValidationError:
        raise UnreadableGlossary("its field meta is not what this version writes") from None


def encode_terms(entries: Iterable[GlossaryEntry]) -> bytes:
    """Return the bytes of a field `terms:<tag>`: per entry source, targets and options, if any."""
    rows = [_row(entry) for entry in entries]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def decode_terms(value: bytes) -> Iterator[GlossaryEntry]:
    """Yield the terms of a field `terms:<tag>`. Raises UnreadableGlossary.

    One term is decoded at a time: `json.loads` of a whole glossary would hold the GIL, and with it
    the event loop, for 150 ms at 100,000 terms, even in a thread.
    """
    try:
        yield from map(_entry, _elements(value.decode()))
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(error).__name__
        raise UnreadableGlossary(f"its terms are not what this version writes ({kind})") from None


def digest_of(source_lang: str | None, terms: dict[str, bytes]) -> str:
    """Return the digest of `meta`: of the source language and each tag with its encoded terms."""
    digest = sha256((source_lang or "").encode())
    for tag in sorted(terms):
        digest.update(f"\n{tag}\n{len(terms[tag])}\n".encode())
        digest.update(terms[tag])
    return digest.hexdigest()


def fields_of(terms: dict[str, bytes]) -> list[str | bytes]:
    """Return the hash fields of the languages and their encoded terms, one after the other."""
    return [part for tag in sorted(terms) for part in (glossary_terms(tag), terms[tag])]


def _row(entry: GlossaryEntry) -> list[Any]:
    options: dict[str, Any] = {}
    if entry.case_sensitive:
        options["case_sensitive"] = True
    if entry.note:
        options["note"] = entry.note
    row: list[Any] = [entry.source, list(entry.targets)]
    return [*row, options] if options else row


def _elements(text: str) -> Iterator[Any]:
    """Yield the elements of a JSON list. Raises ValueError."""
    decode = json.JSONDecoder().raw_decode
    opening = _OPENING.match(text)
    if opening is None:
        raise ValueError("not a list")
    place = opening.end()
    if text[place : place + 1] == "]":
        return
    for _ in range(MOST_TERMS):
        element, end = decode(text, place)
        yield element
        between = _BETWEEN.match(text, end)
        if between is None:
            raise ValueError("not a list")
        if between[1] == "]":
            return
        place = between.end()
    raise ValueError("too many terms")


def _entry(row: Any) -> GlossaryEntry:
    source, targets, options = row if len(row) > 2 else (*row, {})
    if not (isinstance(targets, list) and 1 <= len(targets) <= MOST_TARGETS):
        raise ValueError("no targets")
    if not all(_is_term(term) for term in (source, *targets)):
        raise ValueError("not a term")
    note = options.get("note") if isinstance(options, dict) else None
    return GlossaryEntry(
        source,
        tuple(targets),
        isinstance(options, dict) and options.get("case_sensitive") is True,
        note if isinstance(note, str) else None,
    )


def _is_term(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= LONGEST_TERM and is_utf8(value)
