"""Values of the memory's machine tier: ``o`` and the text, or JSON if there is more to keep."""

from __future__ import annotations

import json
from typing import Any, Final

from dragoman_schemas.approved import ApprovedTranslation
from dragoman_worker.ports import ApprovedQuery, Remembered

FIELD_BYTES: Final = 23
"""Bytes of a key kept as the field; the byte before them is the shard. 192 bits in all: no two of
10^12 entries share them, and Redis rounds a field of 23 bytes up to 32, one of 32 to 48."""
MOST_VALUE_BYTES: Final = 2**20
"""Longer values are ignored: no answer to 128 KiB is that long, and parsing blocks the loop."""
_PLAIN: Final = b"o"
_MOST_INTEGER: Final = 2**53 - 1


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
    """Return the translation, None for a value that this program has not written.

    Whatever is returned can be encoded in a result: a lone surrogate or a deep structure from
    another program would otherwise stop the worker at the end of the job.
    """
    if len(value) > MOST_VALUE_BYTES:
        return None
    try:
        if value[:1] == _PLAIN:
            return _with_text(Remembered(value[1:].decode()))
        members = json.loads(value)
        json.dumps(members, ensure_ascii=False, allow_nan=False).encode()
        return _decoded(members)
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
    if not (isinstance(text, str) and quality in ("ok", "warn")):
        return None
    if not isinstance(warnings, list) or not all(isinstance(one, str) for one in warnings):
        return None
    if not isinstance(checks, dict) or not all(map(_is_check, checks.values())):
        return None
    return _with_text(Remembered(text, quality, tuple(warnings), checks))


def _with_text(found: Remembered) -> Remembered | None:
    """Return it unless it is blank, as no answer is."""
    return found if found.text.strip() else None


def _is_check(value: object) -> bool:
    """Whether it is what a gate leaves: a verdict, and strings and numbers beside it."""
    if not isinstance(value, dict) or not isinstance(value.get("verdict"), str):
        return False
    return all(
        isinstance(one, str) or (isinstance(one, int) and abs(one) <= _MOST_INTEGER)
        for one in value.values()
    )
