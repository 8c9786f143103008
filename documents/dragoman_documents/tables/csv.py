"""CSV and TSV: cells of columns, into new columns named `title.de` or in place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.inline_codes import fits, of_text, rendered
from dragoman_documents.splicing import Replacement, replaced
from dragoman_documents.tables.scanning import (
    Cell,
    Row,
    by_column,
    check_padding,
    delimiter_of,
    rows,
    spelled,
)
from dragoman_documents.values import is_text
from dragoman_text.spans import is_translatable

_OF_LANGUAGE: Final = re.compile(r"(?P<base>.+)\.[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_LONGEST_NAME: Final = 64


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to translate, and the one for its translations: behind the table if it is new."""

    source: int
    name: str
    target: int


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    delimiter: str
    has_header: bool
    rows: tuple[Row, ...]
    columns: tuple[_Column, ...]
    width: int
    """Number of cells of the longest row."""
    language: str
    places: tuple[tuple[int, _Column], ...]
    """Per segment the index of its row, and its column."""


@dataclass(frozen=True)
class TableCodec:
    """Tables with a delimiter, with or without a header; quoting is kept."""

    name: str
    suffixes: frozenset[str]
    delimiter: str
    by_language: bool = True
    has_targets: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the cells of the columns that have text. Raises DocumentError."""
        file = decoded(data)
        delimiter = delimiter_of(file.text, self.delimiter)
        found = tuple(rows(file.text, delimiter))
        has_header = _has_header(found, options)
        width = max((len(row.values) for row in found), default=0)
        columns = tuple(_columns(found, width, options, has_header=has_header))
        if any(column.target >= width for column in columns):
            check_padding(found, width)
        read = [
            (segment, (index, column))
            for index, row in enumerate(found)
            if index or not has_header
            for column in columns[: len(row.values) if not options.columns else None]
            for segment in _segments(row, column, chosen=bool(options.columns))
        ]
        places = tuple(place for _, place in read)
        layout = _Layout(
            file, delimiter, has_header, found, columns, width, options.target_lang, places
        )
        segments = tuple(segment for segment, _ in read)
        return Extraction(
            segments, _skeleton(layout, file.text, found), file.encoding, layout=layout
        )

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the translations of an output from where they were to go; else the sources."""
        layout = layout_of(before, _Layout)
        file = decoded(data)
        found = tuple(rows(file.text, layout.delimiter))
        if len(found) != len(layout.rows):
            raise DocumentError("corrupt", "the output has another number of rows than its source")
        segments = tuple(
            _read(segment, layout.rows[index], found[index], column)
            for segment, (index, column) in zip(before.segments, layout.places, strict=True)
        )
        return Extraction(segments, _skeleton(layout, file.text, found), file.encoding)

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield what can name each column: the cell of the first row, then its number."""
        text = decoded(data).text
        found = tuple(rows(text, delimiter_of(text, self.delimiter)))
        yield from ([name] for name in _names(found) if name and len(name) <= _LONGEST_NAME)
        width = max((len(row.values) for row in found), default=0)
        yield from ([str(number + 1)] for number in range(width))

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the table with translations; in a new column a cell without one has its source."""
        layout = layout_of(extraction, _Layout)
        values = {
            (index, column.target): value
            for segment, (index, column), text in zip(
                extraction.segments, layout.places, texts, strict=True
            )
            if text is not None
            and (value := _value(layout.rows[index].values[column.source], segment, text))
            is not None
        }
        if not values:
            return data
        changes = [*_replacements(layout, values), *_appended(layout, values)]
        return layout.file.encoded(replaced(layout.file.text, changes))


def _has_header(found: Sequence[Row], options: Options) -> bool:
    """Return whether the first row is a header: names of their own, and rows follow it."""
    if not found:
        return False
    names = _names(found)
    if any(name in names for name in options.columns):
        return True
    words = all(name and len(name) <= _LONGEST_NAME and is_named(name) for name in names)
    return len(found) > 1 and words and len(set(names)) == len(names)


def is_named(name: str) -> bool:
    """Return whether a cell can be the name of a column: it has a letter, and is no sentence."""
    return any(map(str.isalpha, name)) and name[-1] not in ".!?" and "\n" not in name


def _names(found: Sequence[Row]) -> list[str]:
    return [value.strip() for value in found[0].values] if found else []


def _columns(
    found: Sequence[Row], width: int, options: Options, *, has_header: bool
) -> Iterator[_Column]:
    """Yield the columns to translate; of those that are named, the ones that exist."""
    names = _names(found) if has_header else []
    places = {name: index for index, name in reversed(list(enumerate(names)))}
    behind = width
    for source in _sources(found, names, width, options):
        name = names[source] if source < len(names) else str(source + 1)
        own = f"{name}.{options.target_lang}"
        if options.in_place:
            yield _Column(source, name, source)
        elif own in places:
            yield _Column(source, name, places[own])
        else:
            yield _Column(source, name, behind)
            behind += 1


def _sources(found: Sequence[Row], names: Sequence[str], width: int, options: Options) -> list[int]:
    if options.columns:
        named = (_source(each, names, width) for each in options.columns)
        return list(dict.fromkeys(each for each in named if each is not None))
    body = found[1:] if names else found
    filled = [index for index, values in enumerate(by_column(body, width)) if _has_text(values)]
    known = frozenset(names)
    return [index for index in filled if not _is_translation(index, names, known)]


def _has_text(values: Sequence[str]) -> bool:
    """Return whether a column has text in a cell. One search rules out most columns of numbers."""
    return _LETTER.search(" ".join(values)) is not None and any(map(is_text, values))


def _source(column: str, names: Sequence[str], width: int) -> int | None:
    if column in names:
        return names.index(column)
    return int(column) - 1 if column.isdecimal() and 0 < int(column) <= width else None


def _is_translation(index: int, names: Sequence[str], known: Collection[str]) -> bool:
    """Return whether a column is named like a translation of another: `title.fr`."""
    match = _OF_LANGUAGE.fullmatch(names[index]) if index < len(names) else None
    return match is not None and match["base"] in known


def _segments(row: Row, column: _Column, *, chosen: bool) -> Iterator[Segment]:
    if column.source >= len(row.values):
        return
    value = row.values[column.source]
    if is_translatable(value.strip()) if chosen else is_text(value):
        text, codes = of_text(value.strip())
        yield Segment(text, f"line {row.line}, {column.name}", "cell", codes)


def _around(value: str) -> tuple[str, str]:
    """Return the blanks before and behind the text of a cell."""
    lead, _, trail = value.partition(value.strip())
    return lead, trail


def _value(value: str, segment: Segment, text: str) -> str | None:
    if not fits(text, segment.codes):
        return None
    lead, trail = _around(value)
    return lead + rendered(text, segment.codes, str) + trail


def _read(segment: Segment, source: Row, output: Row, column: _Column) -> Segment:
    """Return a segment with its translation; with its source if there is nothing new."""
    if column.target >= len(output.values):
        return segment
    value = output.values[column.target]
    if column.target < len(source.values) and value == source.values[column.target]:
        return segment
    lead, trail = _around(source.values[column.source])
    text, codes = of_text(value.removeprefix(lead).removesuffix(trail))
    return Segment(text, segment.place, segment.kind, codes)


def _replacements(
    layout: _Layout, values: Mapping[tuple[int, int], str]
) -> Iterator[Replacement[str]]:
    """Yield the cells that are there already."""
    for (index, target), value in values.items():
        row = layout.rows[index]
        if target < len(row.values):
            cell = row.cells[target]
            yield Replacement(cell.start, cell.end, spelled(value, layout.delimiter, cell))


def _appended(layout: _Layout, values: Mapping[tuple[int, int], str]) -> Iterator[Replacement[str]]:
    """Yield what is put behind each row: cells that it lacks, then those of new columns."""
    new = [column for column in layout.columns if column.target >= layout.width]
    if not new:
        return
    for index, row in enumerate(layout.rows):
        parts = [""] * (layout.width - len(row.values) + 1)
        for column in new:
            value = values.get((index, column.target))
            parts.append(_new_cell(layout, row, column, value, index))
        yield Replacement(row.end, row.end, layout.delimiter.join(parts))


def _new_cell(layout: _Layout, row: Row, column: _Column, value: str | None, index: int) -> str:
    cell = row.cells[column.source] if column.source < len(row.values) else Cell(0, 0, False, "")
    if layout.has_header and index == 0:
        value = f"{column.name}.{layout.language}"
    text = cell.value if value is None else value
    return spelled(text, layout.delimiter, cell._replace(value=""))


def _skeleton(layout: _Layout, text: str, found: Sequence[Row]) -> str:
    """Return the digest of the cells that the source has, without those for translations."""
    digest = hashlib.sha256()
    given: dict[int, set[int]] = {}
    for index, column in layout.places:
        given.setdefault(index, set()).add(column.target)
    for index, (source, row) in enumerate(zip(layout.rows, found, strict=True)):
        kept = _kept(text, row, len(source.values), given.get(index, frozenset()))
        digest.update("\0".join(kept).encode("utf-8", "surrogatepass") + b"\1")
    return digest.hexdigest()


def _kept(text: str, row: Row, width: int, targets: Collection[int]) -> Iterator[str]:
    """Yield what stands before, between and behind the cells for translations."""
    start = row.start
    for target in sorted(targets):
        if target < min(width, len(row.values)):
            yield text[start : row.cells[target].start]
            start = row.cells[target].end
    yield text[start : row.end if len(row.values) <= width else row.cells[width - 1].end]


CODECS: Final[Mapping[str, Codec]] = {
    "csv": TableCodec("csv", frozenset({".csv"}), ","),
    "tsv": TableCodec("tsv", frozenset({".tsv", ".tab"}), "\t"),
}
