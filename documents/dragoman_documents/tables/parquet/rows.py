"""Some rows of a Parquet file: their texts, and the cells that get translations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from dragoman_documents.codec import MOST_CHARACTERS, InlineCode, Segment
from dragoman_documents.inline_codes import fits, of_text, rendered
from dragoman_documents.tables.parquet.cells import Cell, ParquetLeaf, cells
from dragoman_text.spans import is_translatable

_LONGEST_CELL: Final = 4 * (MOST_CHARACTERS + 1)
"""Bytes of a text that may have no more than MOST_CHARACTERS."""


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column to translate."""

    source: ParquetLeaf
    target: ParquetLeaf | None
    """None: a new column."""
    name: str
    """Of the new column."""


class Spot(NamedTuple):
    """Where a text is in some rows."""

    column: int
    """Number among the columns that are translated."""
    row: int
    member: int | None
    """In the list of the cell, None for a cell that is a text."""


class SomeRows:
    """Some rows: their texts, and the cells of the columns that get translations."""

    def __init__(
        self,
        wanted: Sequence[WantedColumn],
        arrays: dict[int, pa.Array],
        first: int,
        ids: Sequence[str],
    ) -> None:
        """`arrays` are columns by their places in the schema; `first` is the number of a row.

        `ids` follow the numbers of rows in places; they may be empty.
        """
        self._sources = [cells(arrays[each.source.place], each.source) for each in wanted]
        self.outputs = [
            _held(each, arrays, source) for each, source in zip(wanted, self._sources, strict=True)
        ]
        self._names = [each.source.name for each in wanted]
        self._ids = ids
        self._has_targets = [each.target not in {None, each.source} for each in wanted]
        self._first = first
        self._spots: list[Spot] = []
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

    def _put(self, spot: Spot, text: str) -> None:
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
            if (found := _sent(value)) is None:
                continue
            self._spots.append(Spot(column, row, member if cell is several else None))
            yield Segment(
                found[0], f"{place}, {self._names[column]}", "cell", found[1],
                state="done" if held else "empty",
                target=_target(held) if isinstance(held, bytes) and held else None,
            )  # fmt: skip


def _held(wanted: WantedColumn, arrays: dict[int, pa.Array], source: list[Cell]) -> list[Cell]:
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


def _sent(value: bytes | None) -> tuple[str, tuple[InlineCode, ...]] | None:
    """Return the text of a segment and its codes; None without anything to translate.

    Bytes that are no UTF-8 become half characters, which nobody sends. Of a cell that is too long
    the segment has only so much that it is too long, too: the whole may have gigabytes.
    """
    if value is None:
        return None
    if len(value) > _LONGEST_CELL:
        return value[:_LONGEST_CELL].decode(errors="surrogateescape"), ()
    try:
        core = value.decode().strip()
    except UnicodeDecodeError:
        return value.decode(errors="surrogateescape"), ()
    return of_text(core) if is_translatable(core) else None


def _target(held: bytes) -> str | None:
    return held.decode(errors="replace") if len(held) <= _LONGEST_CELL else None
