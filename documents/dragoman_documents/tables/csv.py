"""CSV and TSV: cells of columns, into columns of the target language or in place."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import (
    MOST_CHARACTERS,
    Codec,
    DocumentError,
    Extraction,
    Options,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.inline_codes import fits, of_text, of_value, rendered
from dragoman_documents.splicing import Replacement, replaced
from dragoman_documents.tables.columns import (
    LONGEST_NAME,
    Column,
    columns,
    has_header,
    names_of,
    source_of,
)
from dragoman_documents.tables.scanning import (
    CsvCell,
    Row,
    check_padding,
    delimiter_of,
    rows,
    spelled,
)
from dragoman_documents.values import computes, is_formula, is_text
from dragoman_text.spans import is_translatable


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    delimiter: str
    has_header: bool
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    width: int
    """Number of cells of the longest row."""
    places: tuple[tuple[int, Column], ...]
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
        headed = has_header(found, options)
        width = max((len(row.values) for row in found), default=0)
        wanted = tuple(columns(found, width, options, headed=headed))
        check_padding(found, _padded(wanted, width))
        named = _id_column(found if headed else (), width, options)
        read = [
            (segment, (index, column))
            for index, row in enumerate(found)
            if index or not headed
            for column in wanted[: len(row.values) if not options.columns else None]
            for segment in _segments(row, column, named, chosen=bool(options.columns))
        ]
        places = tuple(place for _, place in read)
        layout = _Layout(file, delimiter, headed, found, wanted, width, places)
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
            _read(segment, layout.rows[index], found[index], column, layout.width)
            for segment, (index, column) in zip(before.segments, layout.places, strict=True)
        )
        return Extraction(segments, _skeleton(layout, file.text, found), file.encoding)

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield what can name each column: the cell of the first row, then its number."""
        text = decoded(data).text
        found = tuple(rows(text, delimiter_of(text, self.delimiter)))
        yield from ([name] for name in names_of(found) if name and len(name) <= LONGEST_NAME)
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


def has_same_columns(one: Extraction, other: Extraction) -> bool:
    """Return whether two tables have the same columns of sources and translations."""
    layouts = (one.layout, other.layout)
    held = [(each.columns, each.width) for each in layouts if isinstance(each, _Layout)]
    return len(held) < len(layouts) or held[0] == held[1]


def _padded(wanted: Sequence[Column], width: int) -> int:
    """Return the number of cells that a row gets at least if it has translations."""
    others = (min(each.target + 1, width) for each in wanted if each.target != each.source)
    return max(others, default=0)


def _id_column(found: Sequence[Row], width: int, options: Options) -> int | None:
    names = names_of(found)
    return next(
        (at for each in options.ids if (at := source_of(each, names, width)) is not None), None
    )


def _id(row: Row, named: int | None) -> str:
    """Return the id of a row in brackets, empty if it has none."""
    if named is None or named >= len(row.values):
        return ""
    return f" ({' '.join(row.values[named].split())[:LONGEST_NAME]})"


def _segments(row: Row, column: Column, named: int | None, *, chosen: bool) -> Iterator[Segment]:
    if column.source >= len(row.values):
        return
    value = row.values[column.source]
    if _is_sent(value, chosen=chosen):
        text, codes = of_value(value)
        target = _held(row, column)
        yield Segment(
            text, f"line {row.line}{_id(row, named)}, {column.name}", "cell", codes,
            state="empty" if target is None else "done", target=target,
        )  # fmt: skip


def _is_sent(value: str, *, chosen: bool) -> bool:
    if len(value) > MOST_CHARACTERS:
        return True  # and told, as no one sends it
    return (is_translatable(value.strip()) if chosen else is_text(value)) and not is_formula(value)


def _held(row: Row, column: Column) -> str | None:
    """Return the translation that a row holds; None if there is none."""
    if column.target == column.source or column.target >= len(row.values):
        return None
    value = row.values[column.target].strip()
    return of_text(value)[0] if value else None


def _around(value: str) -> tuple[str, str]:
    """Return the blanks before and behind the text of a cell."""
    lead, _, trail = value.partition(value.strip())
    return lead, trail


def _value(value: str, segment: Segment, text: str) -> str | None:
    """Return a translation as the value of a cell; None if a spreadsheet would compute it."""
    if not fits(text, segment.codes):
        return None
    lead, trail = _around(value)
    held = rendered(text, segment.codes, str)
    return None if computes(held) and not computes(value.strip()) else lead + held + trail


def _read(segment: Segment, source: Row, output: Row, column: Column, width: int) -> Segment:
    """Return a segment with its translation; with its source if there is nothing new."""
    if segment.target is not None:
        return segment._replace(target=_held(output, column))
    if column.target >= len(output.values):
        return segment
    value = output.values[column.target]
    before = source.values[column.target] if column.target < len(source.values) else ""
    if value == before and (column.target < width or column.target < len(source.values)):
        return segment
    held = source.values[column.source]
    if len(held) > MOST_CHARACTERS and value == held:
        return segment
    lead, trail = _around(held)
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
    lacking = _lacking(layout, values)
    for index in range(len(layout.rows)) if new else lacking:
        row = layout.rows[index]
        end = layout.width if new else max(lacking[index]) + 1
        held = lacking.get(index, {})
        cells = [held.get(target, "") for target in range(len(row.values), end)]
        for column in new:
            value = values.get((index, column.target))
            cells.append(_new_cell(layout, row, column, value, index))
        yield Replacement(row.end, row.end, layout.delimiter.join(["", *cells]))


def _lacking(
    layout: _Layout, values: Mapping[tuple[int, int], str]
) -> Mapping[int, Mapping[int, str]]:
    """Return by row the cells for translations that the table has and the row lacks."""
    found: dict[int, dict[int, str]] = {}
    for column in layout.columns:
        if column.target == column.source or column.target >= layout.width:
            continue
        for index, row in enumerate(layout.rows):
            if column.target >= len(row.values) and (index, column.target) in values:
                cell = _new_cell(layout, row, column, values[index, column.target], index)
                found.setdefault(index, {})[column.target] = cell
    return found


def _new_cell(layout: _Layout, row: Row, column: Column, value: str | None, index: int) -> str:
    cell = row.cells[column.source] if column.source < len(row.values) else CsvCell(0, 0, False, "")
    if layout.has_header and index == 0:
        value = column.header
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
