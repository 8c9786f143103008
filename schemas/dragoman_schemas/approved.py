"""Approved translations in Redis: fields, values and order of look-up (docs/reference/memory.md).

They lie in 256 hashes, ``dragoman:memory:approved:{xx}``. ``xx`` is the first byte of the SHA-256
of the source text, so that one command finds a text with all its fallbacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from dragoman_schemas.jobs import MAX_TEXT_BYTES
from dragoman_schemas.languages import lookup_tags

UNDETERMINED: Final = "und"
"""Source tag of a translation whose source language was not given: it fits every one."""
MOST_TARGET_BYTES: Final = 4 * MAX_TEXT_BYTES
"""Size of a translation: UTF-8 of a script may take three bytes per letter and Latin one."""
MOST_VALUE_BYTES: Final = 8 * MOST_TARGET_BYTES
"""Size of a value: JSON may take six bytes per byte of source, target and context (`\\u0001`)."""
_TEXTS: Final = ("source", "target", "target_lang")
_OPTIONAL: Final = ("source_lang", "context")


@dataclass(frozen=True, slots=True)
class ApprovedTranslation:
    """One entry. Tags are canonical; `source` and `target` have no blanks around them."""

    source: str
    target: str
    target_lang: str
    source_lang: str | None = None
    context: str | None = None

    @property
    def shard(self) -> int:
        """The shard (0-255) that holds it."""
        return shard_of(self.source)

    @property
    def field(self) -> bytes:
        """Its field in the shard's hash: an import of the same entry replaces it."""
        return _field(self.source, self.source_lang, self.target_lang, self.context)


def shard_of(source: str) -> int:
    """Return the shard (0-255) of a text, which has no blanks around it."""
    return sha256(source.encode()).digest()[0]


def lookup_fields(
    source: str, target_lang: str, source_lang: str | None, context: str | None
) -> list[bytes]:
    """Return the fields that may hold an item's translation, the best first.

    With the item's context before without; then by target tag: exact, then shorter ones of the same
    script; then by source tag: exact, shorter, ``und``.
    """
    tags = _lookup_tags(target_lang, source_lang)
    contexts = dict.fromkeys((context or None, None))
    pairs = list(tags)
    return [_field(source, by, to, given) for given in contexts for to, by in pairs]


def encode_approved(translation: ApprovedTranslation) -> bytes:
    """Return the value of the field: a JSON object without absent members."""
    members = {name: getattr(translation, name) for name in (*_TEXTS, *_OPTIONAL)}
    kept = {name: value for name, value in members.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def decode_approved(value: bytes) -> ApprovedTranslation | None:
    """Return the translation, None for a value that another program has written wrongly."""
    if len(value) > MOST_VALUE_BYTES:
        return None
    try:
        members = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict) or not all(_is_text(members.get(name)) for name in _TEXTS):
        return None
    source_lang, context = members.get("source_lang"), members.get("context")
    is_known = source_lang is None or _is_text(source_lang)
    if not is_known or not (context is None or _is_context(context)):
        return None
    source, target, target_lang = (members[name] for name in _TEXTS)
    if len(target.encode()) > MOST_TARGET_BYTES:
        return None
    return ApprovedTranslation(source, target, target_lang, source_lang, context)


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded: lone surrogates of a JSON escape cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip() != "" and is_utf8(value)


def _is_context(value: object) -> bool:
    """Whether it is looked up as it is: a blank one, which gettext allows, but not an empty one."""
    return isinstance(value, str) and value != "" and is_utf8(value)


def _lookup_tags(target_lang: str, source_lang: str | None) -> Iterator[tuple[str, str | None]]:
    sources = lookup_tags(source_lang) if source_lang else ()
    for target in lookup_tags(target_lang):
        for source in (*sources, None):
            yield target, source


def _field(source: str, source_lang: str | None, target_lang: str, context: str | None) -> bytes:
    members = [source, source_lang or UNDETERMINED, target_lang, context]
    return sha256(json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()).digest()
