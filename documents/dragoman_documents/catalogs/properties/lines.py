"""The entries of a .properties file, as java.util.Properties reads them, and its escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import DocumentError
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.spelling import Spelling, escapes

_BLANK: Final = r"[ \t\f]"
_NEWLINE: Final = r"(?:\r\n|\r|\n)"
_LINE: Final = re.compile(
    rf"{_BLANK}*+(?:[#!][^\r\n]*+|(?P<key>(?:\\(?:\r\n|[\s\S])|[^\\\r\n=: \t\f])*+)"
    rf"(?:\\{_NEWLINE}{_BLANK}*+|{_BLANK})*+(?:[=:](?:\\{_NEWLINE}{_BLANK}*+|{_BLANK})*+)?"
    r"(?P<value>(?:\\(?:\r\n|[\s\S])|[^\\\r\n])*+)\\?)"
    rf"(?:{_NEWLINE}|\Z)"
)
"""A logical line: a comment, or a key and a value that may go on behind a backslash."""
_ESCAPE: Final = re.compile(rf"\\(?:u([0-9A-Fa-f]{{4}})|({_NEWLINE}{_BLANK}*+)|([\s\S]))")
_PAIR: Final = r"\\[uU][dD][89abAB][0-9A-Fa-f]{2}\\[uU][dD][c-fC-F][0-9A-Fa-f]{2}"
_PIECE: Final = re.compile(rf"{_PAIR}|(?:\\{_NEWLINE}{_BLANK}*+)++|{_ESCAPE.pattern}")
"""An escape, both halves of a pair, or lines that go on."""
_GOING_ON: Final = re.compile(rf"(?:\\{_NEWLINE}{_BLANK}*+)++")
_MEANT: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPELLED: Final = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in [*range(32), 127]}
    | {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
)
_ARGUMENT: Final = re.compile(r"\{[0-9]{1,3}[,}]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PropertiesEntry:
    """A key, its value decoded, and the range in which the value is spelled."""

    key: str
    value: str
    start: int
    end: int


def read(data: bytes) -> Decoded:
    """Return the text: ASCII (all else escaped), UTF-8 or ISO-8859-1. Raises DocumentError."""
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in data:
        raise DocumentError("encoding", "it has NUL bytes; is it a .properties file?")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return decoded(data, "iso-8859-1")
    return decoded(data, "ascii")


def entries(text: str) -> Iterator[PropertiesEntry]:
    """Yield the entries in order; every text is a .properties file."""
    place = 0
    while place < len(text) and (match := _LINE.match(text, place)) is not None:
        start, end = match.span("value")
        if start < end:
            end = _without_last_breaks(text, start, end)
            yield PropertiesEntry(_meaning(match["key"]), _meaning(text[start:end]), start, end)
        place = match.end()


def _without_last_breaks(text: str, start: int, end: int) -> int:
    """Return where a value ends if it goes on with lines that hold nothing."""
    if "\n" not in text[start:end] and "\r" not in text[start:end]:
        return end
    last = max(_GOING_ON.finditer(text, start, end), key=re.Match.end, default=None)
    return last.start() if last is not None and last.end() == end else end


def respelled(value: str, raw: str) -> str:
    """Return a value as it is spelled, as its source `raw` where that still stands."""
    spelled = Spelling(escapes(raw, _PIECE, _meaning), _escaped).spelled(value)
    if spelled.startswith(" "):
        spelled = f"\\{spelled}"
    return spelled if _meaning(spelled) == value else escaped(value)


def _meaning(spelled: str) -> str:
    return with_pairs(_ESCAPE.sub(_meant, spelled)) if "\\" in spelled else spelled


def _meant(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return "" if match[2] else _MEANT.get(match[3], match[3])


def _escaped(text: str) -> str:
    return text.translate(_SPELLED)


def escaped(value: str) -> str:
    """Return a value as it is spelled."""
    spelled = _escaped(value)
    return f"\\{spelled}" if spelled.startswith(" ") else spelled


def unicode_escape(character: str) -> str:
    r"""Return a character as `\uXXXX`, two of them beyond U+FFFF."""
    return "".join(f"\\u{unit:04x}" for unit in units(character))


def is_message_format(value: str) -> bool:
    """Return whether a value is for MessageFormat, where apostrophes are doubled.

    It has an argument, and no single apostrophe, with which MessageFormat would begin a quote.
    """
    return _ARGUMENT.search(value) is not None and "'" not in value.replace("''", "")


def units(character: str) -> list[int]:
    """Return the UTF-16 units of a character: two beyond U+FFFF."""
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]


def with_pairs(text: str) -> str:
    """Return a text whose pairs of surrogates are the characters they stand for."""
    if not _SURROGATE.search(text):
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    return data.decode("utf-16-be", "surrogatepass")
