"""JSONL: strings of each line's members, everything else byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dragoman_documents.catalogs.json.scanning import DEEPEST, is_escaped, respelled
from dragoman_documents.codec import (
    MOST_CHARACTERS,
    Codec,
    DocumentError,
    Extraction,
    Options,
    Remark,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.inline_codes import fits, of_text, of_value, rendered
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_documents.values import at_places, is_text, place_of
from dragoman_text.spans import is_translatable

_LINE: Final = re.compile(r"[^\n]*+\n?")
_SPELLED: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r]*+(:)?')
"""A string of a line that is valid JSON; with a colon behind it, it is a key."""
_LONGEST_ID: Final = 100
_Path = tuple[str, ...]


class _Members(tuple[tuple[str, Any], ...]):
    """The members of an object: a dictionary would lose those whose name is there twice."""

    __slots__ = ()


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Members)


class _TooDeep(Exception):
    """A value with more levels than are read."""


class _String(NamedTuple):
    """A string value: its members from the outside, without places in lists, and its range."""

    path: tuple[str, ...]
    value: str
    start: int
    end: int
    line: int
    row_id: str = ""
    beside: frozenset[str] | None = None
    """Names of the members of the object whose member it is; None in a list, or without object."""


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    escaped: bool
    count: int
    """Number of string values of the file."""
    indices: Sequence[int]
    """Of those that have segments, among them."""
    strings: Sequence[_String]
    added: str | None = None
    """The language of the members that are added; None if translations replace their sources."""


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
        wanted = frozenset(tuple(each.split(".")) for each in options.fields)
        added = options.target_lang if options.add else None
        count, indices, kept, left = 0, list[int](), list[_String](), list[_String]()
        for index, string in enumerate(_strings(file.text, options.ids)):
            count = index + 1
            if not _is_wanted(string, wanted) or (added and _is_there(string, added)):
                continue
            if added and string.beside is None:
                left.append(string)
                continue
            indices.append(index)
            kept.append(string)
        found = _extraction(file, count, indices, kept, added)
        return replace(found, remarks=tuple(_left(left)))

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the strings of an output that are in the places of its source's segments."""
        layout = layout_of(before, _Layout)
        file = decoded(data)
        if layout.added is not None:
            return _added_again(file, before, layout, layout.added)
        found = at_places(_strings(file.text, options.ids), layout.indices, layout.count)
        return _extraction(file, layout.count, layout.indices, found, None)

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield the path of each member, whatever its value is; lists are passed through."""
        for line in decoded(data).text.split("\n"):
            if line.strip():
                yield from _paths(_DECODER.decode(line), ())

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations; the others stay as they are."""
        layout = layout_of(extraction, _Layout)
        if layout.added is not None:
            return _with_members(extraction, layout, texts, layout.added)
        changes: list[Replacement[str]] = []
        for segment, string, text in zip(extraction.segments, layout.strings, texts, strict=True):
            if text is not None and fits(text, segment.codes):
                lead, _, trail = string.value.partition(string.value.strip())
                value = lead + rendered(text, segment.codes, str) + trail
                raw = layout.file.text[string.start : string.end]
                content = respelled(value, raw, escaped=layout.escaped)
                changes.append(Replacement(string.start, string.end, content))
        return layout.file.encoded(replaced(layout.file.text, changes)) if changes else data


def _is_wanted(string: _String, fields: frozenset[tuple[str, ...]]) -> bool:
    if fields and string.path not in fields:
        return False
    if len(string.value) > MOST_CHARACTERS:
        return True  # and told, as no one sends it
    return is_translatable(string.value.strip()) if fields else is_text(string.value)


def _is_there(string: _String, lang: str) -> bool:
    """Return whether the member that would be added for a string is there already."""
    return string.beside is not None and f"{string.path[-1]}.{lang}" in string.beside


def _left(strings: Sequence[_String]) -> Iterator[Remark]:
    if strings:
        detail = "texts in lists, and lines that are no object, get no member from --add"
        yield Remark(_place(strings[0]), detail, "list", len(strings))


def _extraction(
    file: Decoded,
    count: int,
    indices: Sequence[int],
    kept: Sequence[_String],
    added: str | None,
) -> Extraction:
    places = () if added is not None else ((each.start, each.end) for each in kept)
    return Extraction(
        tuple(map(_segment, kept)),
        skeleton(file.text, places),
        file.encoding,
        layout=_Layout(file, is_escaped(file.text), count, indices, kept, added),
    )


def _prefix(string: _String, layout: _Layout, lang: str) -> str:
    """Return what stands between a string and the translation in the member behind it."""
    name = json.dumps(f"{string.path[-1]}.{lang}", ensure_ascii=layout.escaped)
    return f", {name}: "


def _with_members(
    extraction: Extraction, layout: _Layout, texts: Sequence[str | None], lang: str
) -> bytes:
    """Return the file with a member behind each string: its translation, or the source again."""
    changes: list[Replacement[str]] = []
    for segment, string, text in zip(extraction.segments, layout.strings, texts, strict=True):
        raw = layout.file.text[string.start : string.end]
        if text is not None and fits(text, segment.codes):
            lead, _, trail = string.value.partition(string.value.strip())
            value = lead + rendered(text, segment.codes, str) + trail
            raw = respelled(value, raw, escaped=layout.escaped)
        member = _prefix(string, layout, lang) + raw
        changes.append(Replacement(string.end, string.end, member))
    return layout.file.encoded(replaced(layout.file.text, changes))


def _added_again(file: Decoded, before: Extraction, layout: _Layout, lang: str) -> Extraction:
    """Return the strings of the added members; the rest must be the source."""
    segments, kept, shift, last = list[Segment](), list[str](), 0, 0
    for segment, string in zip(before.segments, layout.strings, strict=True):
        place, prefix = string.end + shift, _prefix(string, layout, lang)
        start = place + len(prefix)
        spelled = _SPELLED.match(file.text, start)
        if spelled is None or not file.text.startswith(prefix, place):
            raise DocumentError("corrupt", "the output lacks a member that was added")
        kept.append(file.text[last:place])
        text, codes = of_text(json.loads(spelled[1]).strip())
        segments.append(Segment(text, segment.place, segment.kind, codes))
        last, shift = spelled.end(1), shift + spelled.end(1) - place
    kept.append(file.text[last:])
    return Extraction(tuple(segments), skeleton("".join(kept), ()), file.encoding)


def _segment(string: _String) -> Segment:
    text, codes = of_value(string.value)
    return Segment(text, _place(string), "value", codes)


def _place(string: _String) -> str:
    return f"line {string.line}{string.row_id}, {place_of(string.path)}".removesuffix(", ")


def _strings(text: str, ids: Sequence[str] = ()) -> Iterator[_String]:
    for number, line in enumerate(_LINE.finditer(text), 1):
        if line[0].strip():
            yield from _strings_of_line(text, line.start(), line.end(), number, ids)


_Held = tuple[_Path, str, frozenset[str] | None]


def _strings_of_line(
    text: str, place: int, end: int, line: int, ids: Sequence[str]
) -> Iterator[_String]:
    """Yield the string values of a line. Raises DocumentError if it is no JSON."""
    held: list[_Held] = []
    try:
        found = _DECODER.decode(text[place:end])
        _collect(found, (), held)
    except (ValueError, RecursionError):
        raise DocumentError("corrupt", f"line {line} is not a JSON value") from None
    except _TooDeep:
        detail = f"line {line} is nested more than {DEEPEST} times"
        raise DocumentError("bomb", detail) from None
    row_id = _id(found, ids[0]) if ids else ""
    spelled = (each.span(1) for each in _SPELLED.finditer(text, place, end) if not each[2])
    for (path, value, beside), (start, stop) in zip(held, spelled, strict=True):
        yield _String(path, value, start, stop, line, row_id, beside)


def _id(value: object, name: str) -> str:
    """Return the id of a line in brackets, empty if it has none."""
    for path in ((name,), tuple(name.split("."))):
        found: object = value
        for step in path:
            found = dict(found).get(step) if isinstance(found, _Members) else None
        if isinstance(found, str | int | float):
            return f" ({str(found)[:_LONGEST_ID]})"
    return ""


def _collect(
    value: object,
    path: _Path,
    held: list[_Held],
    depth: int = 0,
    beside: frozenset[str] | None = None,
) -> None:
    """Add the strings of a value in their order, with the members that lead to them."""
    if depth > DEEPEST:
        raise _TooDeep
    if isinstance(value, str):
        held.append((path, value, beside))
    elif isinstance(value, _Members):
        names = frozenset(key for key, _ in value)
        for key, each in value:
            _collect(each, (*path, key), held, depth + 1, names)
    elif isinstance(value, list):
        for each in value:
            _collect(each, path, held, depth + 1)


def _paths(value: object, path: _Path) -> Iterator[_Path]:
    if isinstance(value, _Members):
        for key, each in value:
            yield (*path, key)
            yield from _paths(each, (*path, key))
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each, path)


CODECS: Final[Mapping[str, Codec]] = {"jsonl": JsonLinesCodec()}
