"""Which columns of a table does this terminal have room for? What matters least goes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; `goes` is 0 for what is always shown, else the higher, the sooner it is left out.

    Numbers stand at the right, words at the `left`.
    """

    heading: str
    goes: int = 0
    left: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A cell for every column, as plain text."""

    cells: Sequence[str]
    style: str | None = None


def fitted(
    console: Console, columns: Sequence[Column], lines: Sequence[Line], **shape: Any
) -> Table:
    """The table with as many columns as are whole at the console's width. `shape` is for Table."""
    left = list(range(len(columns)))
    while True:
        table = _table(columns, lines, left, shape)
        sacrifice = max(left, key=lambda number: columns[number].goes)
        if columns[sacrifice].goes == 0 or _width(console, table) <= console.width:
            return table
        left.remove(sacrifice)


def _table(
    columns: Sequence[Column], lines: Sequence[Line], kept: Sequence[int], shape: Mapping[str, Any]
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, **shape)
    for number in kept:
        column = columns[number]
        table.add_column(column.heading, justify="left" if column.left else "right", no_wrap=True)
    for line in lines:
        table.add_row(*(line.cells[number] for number in kept), style=line.style)
    return table


def _width(console: Console, table: Table) -> int:
    """What it takes with nothing cut off, however narrow the console is."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum
