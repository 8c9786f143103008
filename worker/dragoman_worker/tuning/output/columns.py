"""Tables fitted to the terminal: the least important columns are left out first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A heading and its priority: 0 is always shown, a higher `drop` is left out sooner.

    Numbers are aligned right, `left` columns left.
    """

    heading: str
    drop: int = 0
    left: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One row of plain text cells, one per column."""

    cells: Sequence[str]
    style: str | None = None


def fitted(
    console: Console, columns: Sequence[TableColumn], lines: Sequence[Line], **shape: Any
) -> Table:
    """Return a table with all columns that fit uncut; `shape` holds further options of Table."""
    left = list(range(len(columns)))
    while True:
        table = _table(columns, lines, left, shape)
        dropped = max(left, key=lambda number: columns[number].drop)
        if columns[dropped].drop == 0 or _width(console, table) <= console.width:
            return table
        left.remove(dropped)


def _table(
    columns: Sequence[TableColumn],
    lines: Sequence[Line],
    kept: Sequence[int],
    shape: Mapping[str, Any],
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, **shape)
    for number in kept:
        column = columns[number]
        table.add_column(column.heading, justify="left" if column.left else "right", no_wrap=True)
    for line in lines:
        table.add_row(*(line.cells[number] for number in kept), style=line.style)
    return table


def _width(console: Console, table: Table) -> int:
    """Return the table's width with no cell cut, whatever the console's width."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum
