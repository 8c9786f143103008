"""Values of the memory's machine tier: ``o`` and the text, or JSON if there is more to keep."""

from __future__ import annotations

import json
from typing import Any, Final

from dragoman_schemas.approved import ApprovedTranslation
from dragoman_worker.ports import ApprovedQuery, Remembered

FIELD_BYTES: Final = 23
"""Bytes of a key kept as the field; the byte before them is the shard. 192 bits in all: no two of
10^12 entries share them, and Redis rounds a field of 23 bytes up to 32, one of 32 to 48."""
_PLAIN: Final = b"o"
_VERDICTS: Final = frozenset({"ok", "warn"})


def shard_and_field(key: bytes) -> tuple[int, bytes]:
    """Return the shard (0-255) and the field of a key of 32 bytes."""
    return key[0], key[1 : 1 + FIELD_BYTES]


def encode_value(translation: Remembered) -> bytes:
    """Return the value: the text's UTF-8 after one byte for most translations."""
    text = translation.text
    if translation.quality == "ok" and not translation.warnings and not translation.checks:
        return _PLAIN + text.encode()
    members: dict[str, Any] = {"t": text, "q": translation.quality}
    if translation.warnings:
        members["w"] = translation.warnings
    if translation.checks:
        members["c"] = dict(translation.checks)
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def decode_value(value: bytes) -> Remembered | None:
    """Return the translation, None for a value that this program has not written."""
    try:
        if value[:1] == _PLAIN:
            return Remembered(value[1:].decode())
        return _decoded(json.loads(value))
    except (ValueError, RecursionError):
        return None


def approved_answer(query: ApprovedQuery, found: ApprovedTranslation) -> Remembered:
    """Return the translation with the blanks that the item has around its text."""
    text = query.text.strip()
    start = query.text.index(text)
    framed = query.text[:start] + found.target + query.text[start + len(text) :]
    return Remembered(framed, checks={"memory": {"origin": "approved"}}, approved=True)


def _decoded(members: object) -> Remembered | None:
    if not isinstance(members, dict):
        return None
    text, quality = members.get("t"), members.get("q")
    warnings, checks = members.get("w", []), members.get("c", {})
    if not isinstance(text, str) or quality not in _VERDICTS or not isinstance(checks, dict):
        return None
    if not isinstance(warnings, list) or not all(isinstance(one, str) for one in warnings):
        return None
    return Remembered(text, quality, tuple(warnings), checks)
