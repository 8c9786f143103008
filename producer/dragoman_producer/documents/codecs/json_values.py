"""JSON and its relatives: string values spliced between untouched bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, Literal, NamedTuple, cast

from dragoman_producer.documents.codecs.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Segment,
)
from dragoman_producer.documents.codecs.encodings import Decoded, decoded
from dragoman_producer.documents.codecs.icu_parsing import has_arms
from dragoman_producer.documents.codecs.inline_codes import composed, rendered
from dragoman_producer.documents.codecs.key_patterns import is_selected
from dragoman_producer.documents.codecs.splicing import Replacement, replaced, skeleton
from dragoman_producer.documents.codecs.values import is_text

# Blanks and the comments of JSONC; what is not closed is no comment.
_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_LITERAL: Final = re.compile(r"(?:true|false|null|-?[0-9][0-9.eE+\-]*)(?![A-Za-z0-9])")
_DEEPEST: Final = 1_000
"""Levels: the path of a string takes time in their number."""
_Path = tuple[str, ...]


class _String(NamedTuple):
    """A string value with its quotes, and the keys and indices that lead to it."""

    path: _Path
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    count: int
    """Number of string values of the file."""
    indices: Sequence[int]
    """Of those that are segments, among them."""
    strings: Sequence[_String]


def _any(_path: _Path) -> bool:
    return True


def _is_resource(path: _Path) -> bool:
    """Return whether a value of an ARB file is a resource: `@key` describes one, `@@` the file."""
    return bool(path) and not path[0].startswith("@")


@dataclass(frozen=True, slots=True)
class Json:
    """String values of JSON, with the comments and trailing commas of JSONC."""

    name: str = "json"
    suffixes: frozenset[str] = frozenset({".json", ".jsonc"})
    is_wanted: Callable[[_Path], bool] = _any
    """Which values the format has texts in."""
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the values that are text. Raises DocumentError (`corrupt`, `encoding`)."""
        file = decoded(data)
        found = list(_strings(file.text))
        indices = [
            index
            for index, each in enumerate(found)
            if self.is_wanted(each.path)
            and is_text(each.value)
            and not has_arms(each.value)
            and is_selected(each.path, options.keys)
        ]
        return _extraction(file, found, indices)

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the values of an output that are in the places of its source's segments."""
        layout = cast("_Layout", before.layout)
        file = decoded(data, layout.file.encoding)  # more text could be recognised otherwise
        found = list(_strings(file.text))
        if len(found) != layout.count:
            raise DocumentError("corrupt", "the output has other strings than its source")
        return _extraction(file, found, layout.indices)

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations; an empty one leaves the source."""
        layout = cast("_Layout", extraction.layout)
        escaped = layout.file.text.isascii() and "\\u" in layout.file.text
        changes: list[Replacement[str]] = []
        for segment, string, text in zip(extraction.segments, layout.strings, texts, strict=True):
            if text is not None and text.strip():
                lead, _, trail = string.value.partition(string.value.strip())
                value = lead + rendered(text, segment.codes, str).strip() + trail
                content = json.dumps(value, ensure_ascii=escaped)
                changes.append(Replacement(string.start, string.end, content))
        return layout.file.encoded(replaced(layout.file.text, changes), _reference)


def _extraction(file: Decoded, found: Sequence[_String], indices: Sequence[int]) -> Extraction:
    kept = [found[index] for index in indices]
    return Extraction(
        segments=tuple(map(_segment, kept)),
        skeleton=skeleton(file.text, ((each.start, each.end) for each in kept)),
        encoding=file.encoding,
        layout=_Layout(file, len(found), indices, kept),
    )


def _segment(string: _String) -> Segment:
    text, codes = composed([string.value.strip()])
    return Segment(text, ".".join(string.path) or "value", "value", codes)


def _reference(character: str) -> str:
    """Return the escape of a character that the file's encoding lacks."""
    return json.dumps(character)[1:-1]


@dataclass(slots=True)
class _Level:
    """An object or a list that is open."""

    is_object: bool
    key: str = ""
    count: int = 0

    @property
    def step(self) -> str:
        return self.key if self.is_object else str(self.count)


def _strings(text: str) -> Iterator[_String]:
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

    def read(self) -> _String | None:
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

    def _value(self, mark: str) -> _String | None:
        if mark in ("{", "["):
            if len(self._levels) == _DEEPEST:
                raise DocumentError("bomb", f"it is nested more than {_DEEPEST:,} times")
            self._levels.append(_Level(mark == "{"))
            self._awaits = "key" if mark == "{" else "value"
            self.place += 1
            return None
        start = self.place
        self._awaits = "separator"
        if mark == '"':
            path = tuple(level.step for level in self._levels)
            value = self._scanned()
            return _String(path, value, start, self.place)
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


CODECS: Final[Mapping[str, Codec]] = {
    "json": Json(),
    "arb": Json("arb", frozenset({".arb"}), _is_resource),
}
