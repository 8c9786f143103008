"""The string values of JSON with their places, for the formats that are spelled in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, NamedTuple

from dragoman_documents.codec import DocumentError
from dragoman_documents.spelling import Spelling, escapes

# Blanks and the comments of JSONC; what is not closed is no comment.
_SKIPPED: Final = r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_STRING: Final = r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"'
_LITERAL: Final = r"(?:true|false|null|NaN|-?Infinity|-?[0-9][0-9.eE+\-]*+)(?![A-Za-z0-9])"
_VALUE: Final = rf"(?:({_STRING})|([{{\[])|{_LITERAL}){_SKIPPED}([,}}\]]?)"
_MEMBER: Final = re.compile(rf"{_SKIPPED}({_STRING}){_SKIPPED}:{_SKIPPED}{_VALUE}")
_MORE: Final = "; beyond JSON only comments and trailing commas are read, not JSON5"
_ITEM: Final = re.compile(rf"{_SKIPPED}((?!))?{_VALUE}")
"""A value with what is around it, one match for each: key, string, opening mark, mark behind."""
_MARK: Final = re.compile(rf"{_SKIPPED}([,}}\]]?)")
_VALID: Final = re.compile(rf"{_SKIPPED}(?:{_STRING}{_SKIPPED}(?::{_SKIPPED})?+)?+")
"""What may be right before an error."""
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]"
)
DEEPEST: Final = 128
"""Levels: the path of a string takes time and memory in their number."""
Path = tuple[str | int, ...]
"""Keys, and indices from 0."""


class String(NamedTuple):
    """A string value with its quotes, and the keys and indices that lead to it."""

    path: Path
    value: str
    start: int
    end: int
    key_start: int = -1
    """Where its key begins with its quotes; -1 outside of objects."""
    key_end: int = -1


def strings(text: str) -> Iterator[String]:
    """Yield the string values in order. Raises DocumentError (`corrupt`, `bomb`)."""
    reader = _Reader(text)
    while not reader.done:
        if (string := reader.read()) is not None:
            yield string


def respelled(value: str, raw: str, *, escaped: bool) -> str:
    """Return a string with its quotes, spelled as its source `raw` where that still stands.

    `escaped`: whether all else is in ASCII.
    """

    spelling = Spelling(escapes(raw[1:-1], _ESCAPE, _meaning), _ascii if escaped else _unicode)
    return f'"{spelling.spelled(value)}"'


def _ascii(text: str) -> str:
    return json.dumps(text)[1:-1]


def _unicode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


@cache
def _meaning(escape: str) -> str:
    return str(json.loads(f'"{escape}"'))


def is_escaped(document: str) -> bool:
    """Return whether a document is in ASCII and has escapes, as its translations are to be.

    Takes time in the length of the document.
    """
    return document.isascii() and "\\u" in document


class _Level(NamedTuple):
    """An object or a list that is open around the innermost one."""

    path: Path
    is_object: bool
    items: int


@dataclass(slots=True)
class _Reader:
    """Reads value by value, without recursion."""

    text: str
    place: int = 0
    done: bool = False
    _path: Path = ()
    _is_object: bool = False
    _count: int = 0
    """Number of the items before this one in the innermost object or list."""
    _around: list[_Level] = field(default_factory=list)

    def read(self) -> String | None:
        """Read a value, or the end of an object or list; return it if it is a string."""
        pattern = _MEMBER if self._is_object else _ITEM
        found = pattern.match(self.text, self.place)
        if found is None:
            self._end_early()
            return None
        key, string, opening, mark = found.groups()
        step = self._count if key is None else self._meant(key, found.start(1))
        if opening is not None:
            self.place = found.end(3)
            self._open(step, is_object=opening == "{")
            return None
        value = None
        if string is not None:
            start, end = found.span(2)
            path = (*self._path, step) if self._around else ()
            value = String(path, self._meant(string, start), start, end, *found.span(1))
        self.place = found.end()
        if mark == "," and self._around:
            self._count += 1
        else:
            self._behind(mark)
        return value

    def _open(self, step: str | int, *, is_object: bool) -> None:
        if len(self._around) == DEEPEST:
            raise DocumentError("bomb", f"line {self._line()} is nested more than {DEEPEST} times")
        path = (*self._path, step) if self._around else ()
        self._around.append(_Level(self._path, self._is_object, self._count))
        self._path, self._is_object, self._count = path, is_object, 0

    def _end_early(self) -> None:
        """End an object or list that is empty, or that ends with a comma."""
        mark = self._marked()
        if mark not in ("}", "]"):
            raise self._error()
        self._behind(mark)

    def _behind(self, mark: str) -> None:
        """End the objects and lists that end behind a value; go on behind a comma."""
        while mark in ("}", "]"):
            if not self._around or self._is_object != (mark == "}"):
                raise self._error()
            self._path, self._is_object, self._count = self._around.pop()
            mark = self._marked()
        if bool(mark) != bool(self._around) or (not mark and self.place < len(self.text)):
            raise self._error()
        self._count += 1
        self.done = not mark

    def _marked(self) -> str:
        """Read a comma or the end of an object or list; return it, or nothing."""
        found = _MARK.match(self.text, self.place)
        if found is None:
            raise RuntimeError("the pattern of a mark matches everywhere")
        self.place = found.end()
        return str(found[1])

    def _meant(self, spelled: str, start: int) -> str:
        if "\\" not in spelled:
            return spelled[1:-1]
        try:
            value, _ = scanstring(self.text, start + 1, False)
        except ValueError:
            raise self._error() from None
        return str(value)

    def _line(self) -> int:
        valid = _VALID.match(self.text, self.place)
        return self.text.count("\n", 0, valid.end() if valid else self.place) + 1

    def _error(self) -> DocumentError:
        return DocumentError("corrupt", f"it is not valid JSON at line {self._line()}{_MORE}")
