"""The string values of JSON with their places, for the formats that are spelled in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, Literal, NamedTuple

from dragoman_producer.documents.codecs.codec import DocumentError

# Blanks and the comments of JSONC; what is not closed is no comment.
_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_LITERAL: Final = re.compile(r"(?:true|false|null|-?[0-9][0-9.eE+\-]*)(?![A-Za-z0-9])")
DEEPEST: Final = 128
"""Levels: the path of a string takes time and memory in their number."""
Path = tuple[str, ...]


class String(NamedTuple):
    """A string value with its quotes, and the keys and indices that lead to it."""

    path: Path
    value: str
    start: int
    end: int


@dataclass(slots=True)
class _Level:
    """An object or a list that is open."""

    is_object: bool
    key: str = ""
    count: int = 0

    @property
    def step(self) -> str:
        return self.key if self.is_object else str(self.count)


def strings(text: str) -> Iterator[String]:
    """Yield the string values in order. Raises DocumentError (`corrupt`)."""
    reader = _Reader(text)
    while reader.goes_on():
        if (string := reader.read()) is not None:
            yield string


@dataclass(slots=True)
class _Reader:
    """Reads token by token, without recursion."""

    text: str
    place: int = 0
    _levels: list[_Level] = field(default_factory=list)
    _awaits: Literal["value", "key", "colon", "separator"] = "value"

    def goes_on(self) -> bool:
        """Skip blanks and comments; return whether there is a token."""
        skipped = _SKIPPED.match(self.text, self.place)
        self.place = skipped.end() if skipped else self.place
        if self.place < len(self.text):
            return True
        if self._levels or self._awaits != "separator":
            raise self._error()
        return False

    def read(self) -> String | None:
        """Read a token; return it if it is a string value."""
        mark = self.text[self.place]
        if self._closes(mark):
            self._levels.pop()
            self._awaits = "separator"
            self.place += 1
        elif self._awaits == "value":
            return self._value(mark)
        elif self._awaits == "key" and mark == '"':
            self._levels[-1].key = self._scanned()
            self._awaits = "colon"
        elif self._awaits == "colon" and mark == ":":
            self._awaits = "value"
            self.place += 1
        elif self._awaits == "separator" and mark == "," and self._levels:
            self._levels[-1].count += 1
            self._awaits = "key" if self._levels[-1].is_object else "value"
            self.place += 1
        else:
            raise self._error()
        return None

    def _closes(self, mark: str) -> bool:
        """Return whether a mark ends the last level, which may be empty or end with a comma."""
        if not self._levels or mark not in ("}", "]"):
            return False
        is_object = self._levels[-1].is_object
        awaited = self._awaits in ("separator", "key" if is_object else "value")
        return awaited and mark == ("}" if is_object else "]")

    def _value(self, mark: str) -> String | None:
        if mark in ("{", "["):
            if len(self._levels) == DEEPEST:
                line = self.text.count("\n", 0, self.place) + 1
                raise DocumentError("bomb", f"line {line} is nested more than {DEEPEST} times")
            self._levels.append(_Level(mark == "{"))
            self._awaits = "key" if mark == "{" else "value"
            self.place += 1
            return None
        start = self.place
        self._awaits = "separator"
        if mark == '"':
            path = tuple(level.step for level in self._levels)
            value = self._scanned()
            return String(path, value, start, self.place)
        literal = _LITERAL.match(self.text, start)
        if literal is None:
            raise self._error()
        self.place = literal.end()
        return None

    def _scanned(self) -> str:
        try:
            value, self.place = scanstring(self.text, self.place + 1, False)
        except ValueError:
            raise self._error() from None
        return str(value)

    def _error(self) -> DocumentError:
        line = self.text.count("\n", 0, self.place) + 1
        return DocumentError("corrupt", f"it is not valid JSON at line {line}; correct it")
