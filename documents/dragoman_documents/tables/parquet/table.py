"""Parquet files as tables: which columns are translated, their texts, and where these go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from dragoman_documents.codec import DocumentError, Options, Segment
from dragoman_documents.inline_codes import fits, of_text, rendered
from dragoman_documents.streamed import StreamedFormat, Texts
from dragoman_documents.tables.columns import Column, columns
from dragoman_documents.tables.languages import header
from dragoman_documents.tables.parquet.cells import (
    Cell,
    ParquetLeaf,
    cells,
    column_of,
    leaves_of,
    new_type,
    shown,
)
from dragoman_documents.tables.parquet.files import LikeSource, batches, opened, told
from dragoman_documents.tables.scanning import Row
from dragoman_text.spans import is_translatable

_MOST_NAMES: Final = 20
_LONGEST_ID: Final = 100


class _Spot(NamedTuple):
    """Where a text is in some rows."""

    column: int
    """Number among the columns that are translated."""
    row: int
    member: int | None
    """In the list of the cell, None for a cell that is a text."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A column to translate."""

    source: ParquetLeaf
    target: ParquetLeaf | None
    """None: a new column."""
    name: str
    """Of the new column."""


class ParquetTable:
    """One file. It is read and written some rows at a time, whatever its row groups are."""

    def __init__(self, path: Path, options: Options) -> None:
        """Look at the columns. Raises DocumentError and OSError."""
        self._file = opened(path)
        with told():
            self._schema = self._file.schema_arrow
        self._options = options
        self._leaves = leaves_of(self._schema)
        self._wanted = list(self._found())
        self._ids = [each for name in options.ids if (each := self._named(name)) is not None]

    @property
    def by_language(self) -> bool:
        """Whether a column may hold translations already, so that only some rows need one."""
        sources = {each.source for each in self._wanted}
        return any(
            header(each.name) is not None
            for each in self._leaves
            if each.is_text and each not in sources
        )

    def missing(self) -> list[tuple[str, str]]:
        """Return the names that were given and that no column has, each with its option."""
        given = [("columns", each) for each in self._options.columns]
        given += [("ids", each) for each in self._options.ids]
        return [each for each in given if self._named(each[1]) is None]

    def names(self) -> list[str]:
        """Return the names of the first columns, those with text before the others."""
        found = sorted(self._leaves, key=lambda each: not each.is_text)
        return list(dict.fromkeys(each.name for each in found if each.name))[:_MOST_NAMES]

    def segments(self) -> Iterator[Sequence[Segment]]:
        """Yield the texts of some rows at a time, row by row."""
        if not self._wanted:
            return
        first = 1
        for group in range(self._file.num_row_groups):
            for batch in batches(self._file, group, self._places):
                arrays = dict(zip(self._places, batch.columns, strict=True))
                yield _Rows(self, arrays, first).segments
                first += batch.num_rows

    def write(self, path: Path, texts: Texts) -> Iterator[list[int]]:
        """Write the table with translations; yield, after some rows, the segments that do not fit.

        The numbers count from the first segment of the file.
        """
        output = LikeSource(path, self._file, self._output_schema())
        count, first = 0, 1
        for group in range(self._file.num_row_groups):
            for batch in batches(self._file, group):
                arrays = dict(enumerate(batch.columns))
                rows = _Rows(self, arrays, first)
                bad = rows.put(texts(len(rows.segments)))
                output.add(self._columns(arrays, rows))
                yield [count + each for each in bad]
                count, first = count + len(rows.segments), first + batch.num_rows
            output.end_group()
        output.close()
        self._check(path)

    @cached_property
    def _places(self) -> list[int]:
        """The columns that are read, in their order."""
        found = {each.place for one in self._wanted for each in (one.source, one.target) if each}
        return sorted(found | {each.place for each in self._ids})

    @property
    def wanted(self) -> Sequence[_Wanted]:
        """The columns that are translated."""
        return self._wanted

    def ids(self, arrays: dict[int, pa.Array]) -> list[str]:
        """Return what follows the number of a row in places: its id in brackets."""
        found = [shown(arrays[each.place]) for each in self._ids]
        return [f" ({each[0][:_LONGEST_ID]})" for each in zip(*found, strict=True)]

    def _named(self, name: str) -> ParquetLeaf | None:
        """Return a column by its name, or by its number. Raises DocumentError for two of a name."""
        found = [each for each in self._leaves if each.name == name]
        if len(found) > 1:
            what = f"{len(found)} of its columns are named {name}; give the number of one"
            raise DocumentError("wrong_type", what)
        if not found and name.isdecimal() and 0 < int(name) <= len(self._schema):
            return self._leaves[int(name) - 1]
        return found[0] if found else None

    def _found(self) -> Iterator[_Wanted]:
        """Yield the columns to translate. Raises DocumentError if none are given, or no texts."""
        if not self._options.columns:
            what = f"name the columns to translate with --column; it has {', '.join(self.names())}"
            raise DocumentError("wrong_type", what)
        for name in self._options.columns:
            if (leaf := self._named(name)) is not None and not leaf.is_text:
                what = f"column {name} holds {str(leaf.type)[:80]}, not text"
                raise DocumentError("wrong_type", what)
        names = [each.name if each.is_text else "" for each in self._leaves]
        head = Row(names, 1, 0, 0)
        for each in columns([head], len(names), self._options, headed=True):
            yield self._checked(each)

    def _checked(self, column: Column) -> _Wanted:
        source = self._leaves[column.source]
        if column.target >= len(self._leaves):
            if column.header in self._schema.names:
                what = f"its column {column.header} holds no texts; rename it"
                raise DocumentError("wrong_type", what)
            return _Wanted(source, None, column.header)
        target = self._leaves[column.target]
        if target.path or target.is_list != source.is_list:
            what = f"translations of {source.name} cannot be written to {target.name}"
            raise DocumentError("wrong_type", what)
        return _Wanted(source, target, "")

    def _output_schema(self) -> pa.Schema:
        schema = self._schema
        for each in self._wanted:
            if each.target is None:
                schema = schema.append(pa.field(each.name, new_type(each.source)))
        return schema

    def _columns(self, arrays: dict[int, pa.Array], rows: _Rows) -> list[pa.Array]:
        """Return all columns of some rows with the translations."""
        made, new = list(arrays.values()), list[pa.Array]()
        for each, found in zip(self._wanted, rows.outputs, strict=True):
            if each.target is None:
                new.append(column_of(found, new_type(each.source)))
            else:
                made[each.target.place] = column_of(found, each.target.type)
        return [*made, *new]

    def _check(self, path: Path) -> None:
        """Read the end of the output: it has the rows and columns that it must have."""
        output = opened(path)
        rows, schema = self._file.metadata.num_rows, self._output_schema()
        with output:
            if output.metadata.num_rows != rows or output.schema_arrow.names != schema.names:
                raise DocumentError("corrupt", "its output has other rows or columns than it")


class _Rows:
    """Some rows: their texts, and the cells of the columns that get translations."""

    def __init__(self, table: ParquetTable, arrays: dict[int, pa.Array], first: int) -> None:
        self._sources = [cells(arrays[each.source.place], each.source) for each in table.wanted]
        self.outputs = [
            _held(each, arrays, source)
            for each, source in zip(table.wanted, self._sources, strict=True)
        ]
        self._names = [each.source.name for each in table.wanted]
        self._ids = table.ids(arrays)
        self._has_targets = [each.target not in {None, each.source} for each in table.wanted]
        self._first = first
        self._spots: list[_Spot] = []
        self.segments = list(self._segments())

    def put(self, texts: Sequence[str | None]) -> list[int]:
        """Put translations into the cells; return the numbers of those that do not fit."""
        bad: list[int] = []
        for number, (spot, segment, text) in enumerate(
            zip(self._spots, self.segments, texts, strict=True)
        ):
            if text is None:
                continue
            if not fits(text, segment.codes):
                bad.append(number)
                continue
            self._put(spot, rendered(text, segment.codes, str))
        return bad

    def _put(self, spot: _Spot, text: str) -> None:
        source, output = self._sources[spot.column][spot.row], self.outputs[spot.column]
        if spot.member is None or not isinstance(source, list):
            output[spot.row] = _around(source, text)
            return
        cell = output[spot.row]
        if not isinstance(cell, list) or len(cell) != len(source):
            output[spot.row] = cell = list(source)
        cell[spot.member] = _around(source[spot.member], text)

    def _segments(self) -> Iterator[Segment]:
        for row in range(len(self._sources[0]) if self._sources else 0):
            place = f"row {self._first + row}{self._ids[row] if self._ids else ''}"
            for column, found in enumerate(self._sources):
                if (cell := found[row]) is not None:
                    yield from self._of_cell(cell, column, row, place)

    def _of_cell(
        self, cell: bytes | list[bytes | None], column: int, row: int, place: str
    ) -> Iterator[Segment]:
        held = self.outputs[column][row] if self._has_targets[column] else None
        several = cell if isinstance(cell, list) else [cell]
        for member, value in enumerate(several):
            text = _text(value)
            if text is None or not is_translatable(core := text.strip()):
                continue
            spelled, codes = of_text(core)
            self._spots.append(_Spot(column, row, member if cell is several else None))
            yield Segment(
                spelled, f"{place}, {self._names[column]}", "cell", codes,
                state="done" if held else "empty",
                target=_text(held) if isinstance(held, bytes) and held else None,
            )  # fmt: skip


def _held(wanted: _Wanted, arrays: dict[int, pa.Array], source: list[Cell]) -> list[Cell]:
    """Return the cells that stand where translations go; the sources where there are none."""
    copied = [list(each) if isinstance(each, list) else each for each in source]
    if wanted.target is None or wanted.target == wanted.source:
        return copied
    return cells(arrays[wanted.target.place], wanted.target)


def _around(source: Cell, text: str) -> bytes:
    """Return a translation with the blanks around its source."""
    value = source.decode() if isinstance(source, bytes) else ""
    lead, _, trail = value.partition(value.strip())
    return (lead + text + trail).encode()


def _text(value: bytes | None) -> str | None:
    """Return a text; None without one, and for bytes that are no UTF-8."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


FORMAT: Final = StreamedFormat("parquet", ParquetTable)
