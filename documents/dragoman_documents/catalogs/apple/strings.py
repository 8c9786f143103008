"""The entries of a .strings file of Apple's systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn

from dragoman_documents.catalogs.properties.lines import PropertiesEntry, units, with_pairs
from dragoman_documents.codec import DocumentError
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.spelling import Spelling, escapes

_GAP: Final = re.compile(r"(?:\s++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_STRING: Final = r'"(?:[^"\\]|\\[\s\S])*+"'
_WORD: Final = re.compile(rf"{_STRING}|[A-Za-z0-9_.$/:-]++")
_ESCAPE: Final = re.compile(r"\\(?:[uU]([0-9A-Fa-f]{4})|([0-7]{1,3})|([\s\S]))")
_PAIR: Final = r"\\[uU][dD][89abAB][0-9A-Fa-f]{2}\\[uU][dD][c-fC-F][0-9A-Fa-f]{2}"
_PIECE: Final = re.compile(rf"{_PAIR}|{_ESCAPE.pattern}")
"""An escape, or both halves of a pair."""
_MEANT: Final = {
    "t": "\t", "n": "\n", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
}  # fmt: skip
_SPELLED: Final = str.maketrans(
    {chr(code): f"\\U{code:04x}" for code in range(32)}
    | {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}
)


def read(data: bytes) -> Decoded:
    """Return the text: UTF-16 with or without a mark, or UTF-8. Raises DocumentError."""
    if data.startswith((b"bplist", b"<?xml")):
        raise DocumentError("wrong_type", "it is a property list; convert it with plutil first")
    declared = {b"\0": "utf-16-be"}.get(data[:1]) or {b"\0": "utf-16-le"}.get(data[1:2])
    return decoded(data, declared)


def entries(text: str) -> Iterator[PropertiesEntry]:
    """Yield the entries whose value is quoted, in order. Raises DocumentError."""
    place = _behind_gap(text, 0)
    while place < len(text):
        key, place = _word(text, place)
        if text.startswith("=", place):
            start = _behind_gap(text, place + 1)
            value, place = _word(text, start)
            if value.startswith('"'):
                end = start + len(value) - 1
                yield PropertiesEntry(
                    _meaning(key.strip('"')), _meaning(value[1:-1]), start + 1, end
                )
        if not text.startswith(";", place):
            _refuse(text, place)
        place = _behind_gap(text, place + 1)


def _word(text: str, place: int) -> tuple[str, int]:
    """Return a key or value as spelled, and the place behind it and the gap that follows."""
    match = _WORD.match(text, place)
    if match is None:
        _refuse(text, place)
    return match[0], _behind_gap(text, match.end())


def _behind_gap(text: str, place: int) -> int:
    match = _GAP.match(text, place)
    return match.end() if match else place


def _refuse(text: str, place: int) -> NoReturn:
    line = text.count("\n", 0, place) + 1
    raise DocumentError("corrupt", f'line {line} is not of the form "key" = "value";')


def respelled(value: str, raw: str) -> str:
    """Return a value as it is spelled, as its source `raw` where that still stands."""
    return Spelling(escapes(raw, _PIECE, _meaning), escaped).spelled(value)


def _meaning(spelled: str) -> str:
    return with_pairs(_ESCAPE.sub(_meant, spelled)) if "\\" in spelled else spelled


def _meant(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2]:
        return chr(int(match[2], 8))
    return _MEANT.get(match[3], match[3])


def escaped(value: str) -> str:
    """Return a value as it is spelled between quotes."""
    return value.translate(_SPELLED)


def unicode_escape(character: str) -> str:
    r"""Return a character as `\UXXXX`, two of them beyond U+FFFF."""
    return "".join(f"\\U{unit:04x}" for unit in units(character))
