"""JSONL: strings of each line's members, everything else byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, NamedTuple

from dragoman_producer.documents.codecs.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Segment,
)
from dragoman_producer.documents.codecs.encodings import Decoded, decoded
from dragoman_producer.documents.codecs.inline_codes import composed, fits, rendered
from dragoman_producer.documents.codecs.json_scanning import DEEPEST
from dragoman_producer.documents.codecs.splicing import Replacement, replaced, skeleton
from dragoman_producer.documents.codecs.values import is_text, place_of
from dragoman_text.spans import is_translatable

_LINE: Final = re.compile(r"[^\n]*+\n?")
_NEXT: Final = re.compile(r'[^"\[\]{},:]*+(?P<mark>["\[\]{},:])')


class _String(NamedTuple):
    """A string value: its members from the outside, without places in lists, and its range."""

    path: tuple[str, ...]
    value: str
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    escaped: bool
    count: int
    """Number of string values of the file."""
    strings: tuple[tuple[int, _String], ...]
    """Those of the segments, with their indices among all."""


@dataclass(frozen=True)
class JsonLinesCodec:
    """One JSON value per line."""

    name: str = "jsonl"
    suffixes: frozenset[str] = frozenset({".jsonl", ".ndjson"})
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the strings of the fields; by default all that are text. Raises DocumentError."""
        file = decoded(data)
        found = list(_strings(file.text))
        wanted = frozenset(tuple(each.split(".")) for each in options.fields)
        kept = tuple(
            (index, each)
            for index, each in enumerate(found)
            if (each.path in wanted and is_translatable(each.value.strip()))
            or (not wanted and is_text(each.value))
        )
        # An ASCII file with escapes stays in ASCII.
        escaped = file.text.isascii() and "\\u" in file.text
        return Extraction(
            tuple(_segment(each) for _, each in kept),
            skeleton(file.text, [(each.start, each.end) for _, each in kept]),
            file.encoding,
            layout=_Layout(file, escaped, len(found), kept),
        )

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the strings of an output that are in the places of its source's segments."""
        layout = _layout(before)
        file = decoded(data)
        found = list(_strings(file.text))
        if len(found) != layout.count:
            raise DocumentError("corrupt", "the output has other strings than its source")
        kept = [found[index] for index, _ in layout.strings]
        return Extraction(
            tuple(map(_segment, kept)),
            skeleton(file.text, [(each.start, each.end) for each in kept]),
            file.encoding,
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations; the others stay as they are."""
        layout = _layout(extraction)
        changes: list[Replacement[str]] = []
        for segment, (_, string), text in zip(
            extraction.segments, layout.strings, texts, strict=True
        ):
            if text is not None and fits(text, segment.codes):
                lead, _, trail = string.value.partition(string.value.strip())
                value = lead + rendered(text, segment.codes, str) + trail
                content = json.dumps(value, ensure_ascii=layout.escaped)
                changes.append(Replacement(string.start, string.end, content))
        return layout.file.encoded(replaced(layout.file.text, changes)) if changes else data


def _layout(extraction: Extraction) -> _Layout:
    if not isinstance(extraction.layout, _Layout):
        raise TypeError("the extraction is not that of JSON lines")
    return extraction.layout


def _segment(string: _String) -> Segment:
    text, codes = composed([string.value.strip()])
    place = f"line {string.line}, {place_of(string.path)}".removesuffix(", ")
    return Segment(text, place, "value", codes)


def _strings(text: str) -> Iterator[_String]:
    for number, line in enumerate(_LINE.finditer(text), 1):
        if line[0].strip():
            yield from _strings_of_line(text, line.start(), line.end(), number)


def _strings_of_line(text: str, place: int, end: int, line: int) -> Iterator[_String]:
    """Yield the string values of a line. Raises DocumentError if it is no JSON."""
    try:
        json.loads(text[place:end])
    except (ValueError, RecursionError):
        raise DocumentError("corrupt", f"line {line} is not a JSON value") from None
    keys: list[str | None] = []
    awaits_key = False
    while (found := _NEXT.match(text, place, end)) is not None:
        place = found.end()
        match found["mark"]:
            case "{" | "[":
                _refuse_depth(len(keys), line)
                keys.append("" if found["mark"] == "{" else None)
                awaits_key = found["mark"] == "{"
            case "}" | "]":
                keys.pop()
            case ",":
                awaits_key = bool(keys) and keys[-1] is not None
            case ":":
                awaits_key = False
            case _:
                value, behind = scanstring(text, place, False)
                if awaits_key:
                    keys[-1] = value
                else:
                    path = tuple(key for key in keys if key is not None)
                    yield _String(path, value, place - 1, behind, line)
                place = behind


def _refuse_depth(levels: int, line: int) -> None:
    if levels == DEEPEST:
        raise DocumentError("bomb", f"line {line} is nested more than {DEEPEST} times")


CODECS: Final[Mapping[str, Codec]] = {"jsonl": JsonLinesCodec()}
