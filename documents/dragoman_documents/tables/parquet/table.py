"""Parquet files as tables: which columns are translated, their texts, and where these go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa

from dragoman_documents.codec import (
    DocumentError,
    Options,
    Segment,
)
from dragoman_documents.streamed import StreamedFormat, Texts
from dragoman_documents.tables.columns import Column, columns_of
from dragoman_documents.tables.languages import header
from dragoman_documents.tables.parquet.cells import (
    ParquetLeaf,
    column_of,
    leaves_of,
    new_type,
    shown,
)
from dragoman_documents.tables.parquet.files import (
    LikeSource,
    batches,
    opened,
    rows_at_once,
    told,
)
from dragoman_documents.tables.parquet.rows import SomeRows, WantedColumn

_MOST_NAMES: Final = 20
_LONGEST_ID: Final = 100


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
        self._first, self._rows = 1, 0
        """The rows that are read or written now."""

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
        with self._naming_rows():
            for group in range(self._file.num_row_groups):
                for arrays in self._arrays(group, self._places):
                    yield self._some(arrays).segments

    def write(self, path: Path, texts: Texts) -> Iterator[list[int]]:
        """Write the table with translations; yield, after some rows, the segments that do not fit.

        The numbers count from the first segment of the file.
        """
        output = LikeSource(path, self._file, self._output_schema())
        count = 0
        with self._naming_rows():
            for group in range(self._file.num_row_groups):
                for arrays in self._arrays(group):
                    rows = self._some(arrays)
                    bad = rows.put(texts(len(rows.segments)))
                    output.add(self._columns(arrays, rows))
                    yield [count + each for each in bad]
                    count += len(rows.segments)
                output.end_group()
            output.close()
        self._check(path)

    def _arrays(
        self, group: int, places: Sequence[int] | None = None
    ) -> Iterator[dict[int, pa.Array]]:
        """Yield some rows of a row group at a time, as columns by their places in the schema."""
        left = self._file.metadata.row_group(group).num_rows
        size = rows_at_once(self._file, group, places)
        self._rows = min(size, left)
        for batch in batches(self._file, group, size, places):
            yield dict(zip(places or range(batch.num_columns), batch.columns, strict=True))
            left -= batch.num_rows
            self._first, self._rows = self._first + batch.num_rows, min(size, left)

    @contextmanager
    def _naming_rows(self) -> Iterator[None]:
        """Tell for which rows the memory does not suffice. Raises DocumentError (`too_large`)."""
        self._first = 1
        try:
            yield
        except MemoryError:
            last = self._first + max(1, self._rows) - 1
            some = f"rows {self._first:,} to {last:,}" if last > self._first else f"row {last:,}"
            what = f"{some}: too large for the memory of one document; shorten the longest cells"
            raise DocumentError("too_large", what) from None

    @cached_property
    def _places(self) -> list[int]:
        """The columns that are read, in their order."""
        found = {each.place for one in self._wanted for each in (one.source, one.target) if each}
        return sorted(found | {each.place for each in self._ids})

    def _some(self, arrays: dict[int, pa.Array]) -> SomeRows:
        return SomeRows(self._wanted, arrays, self._first, self._ids_of(arrays))

    def _ids_of(self, arrays: dict[int, pa.Array]) -> list[str]:
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

    def _found(self) -> Iterator[WantedColumn]:
        """Yield the columns to translate. Raises DocumentError if none are given, or no texts."""
        if not self._options.columns:
            what = f"name the columns to translate with --column; it has {', '.join(self.names())}"
            raise DocumentError("wrong_type", what)
        options, chosen = self._options, list[int]()
        for name in options.columns:
            if (leaf := self._named(name)) is None:
                continue
            if not (leaf.is_text or leaf.is_empty):
                what = f"column {name} holds {str(leaf.type)[:80]}, not text"
                raise DocumentError("wrong_type", what)
            if (place := self._leaves.index(leaf)) not in chosen:
                chosen.append(place)
        names = [
            each.name if each.is_text or place in chosen else ""
            for place, each in enumerate(self._leaves)
        ]
        for each in columns_of(names, lambda: [[] for _ in names], len(names), options, chosen):
            yield self._checked(each)

    def _checked(self, column: Column) -> WantedColumn:
        source = self._leaves[column.source]
        if column.target >= len(self._leaves):
            if column.header in self._schema.names:
                what = f"its column {column.header} holds no texts; rename it"
                raise DocumentError("wrong_type", what)
            return WantedColumn(source, None, column.header)
        target = self._leaves[column.target]
        if target.path or target.is_list != source.is_list:
            what = f"translations of {source.name} cannot be written to {target.name}"
            what += "; leave out --in-place" if target is source else "; rename that"
            raise DocumentError("wrong_type", what)
        return WantedColumn(source, target, "")

    def _output_schema(self) -> pa.Schema:
        schema = self._schema
        for each in self._wanted:
            if each.target is None:
                schema = schema.append(pa.field(each.name, new_type(each.source)))
        return schema

    def _columns(self, arrays: dict[int, pa.Array], rows: SomeRows) -> list[pa.Array]:
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


FORMAT: Final = StreamedFormat("parquet", ParquetTable)
