"""Headers of tables: a cell and the name of a column, which must be equal and unique."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.inline_codes import plain
from dragoman_documents.office.ooxml import PREFIXES, related
from dragoman_documents.office.package_codec import PackagePart, opened
from dragoman_documents.office.xlsx.sheets import Formulas
from dragoman_documents.office.xlsx.text import decoded
from dragoman_documents.xml.tree import (
    XmlElement,
    attribute_range,
    text_of,
)

LONGEST: Final = 255
"""Characters of a column's name: a limit of Excel."""
_REFERENCE: Final = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")
_FORMULAS: Final = ("x:calculatedColumnFormula", "x:totalsRowFormula")


@dataclass(frozen=True, slots=True)
class TableHeader:
    """A column of a table whose header is a cell."""

    table: str
    """Name of the part."""
    name: str
    cell: str
    start: int
    end: int
    """Range of the column's name in its part."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a sheet."""

    part: PackagePart
    sheet: str
    headers: tuple[TableHeader, ...]


def tables(
    archive: Archive, types: Mapping[str, str], sheet: str, formulas: Formulas, seen: set[str]
) -> Iterator[Table]:
    """Yield the tables of a sheet's part that are not in `seen`; note what their formulas name."""
    for name in related(archive, sheet).values():
        if name in seen or not types.get(name, "").endswith("spreadsheetml.table+xml"):
            continue
        seen.add(name)
        part = opened(archive, name, PREFIXES)
        for each in part.root.descendants(*_FORMULAS):
            formulas.add(text_of(part.data[each.content : each.stop]))
        yield Table(part, sheet, tuple(_headers(part)))


def _headers(part: PackagePart) -> Iterator[TableHeader]:
    table = part.root
    first = _REFERENCE.match(table.attributes.get("ref", ""))
    if first is None or table.attributes.get("headerRowCount", "1") == "0":
        return
    column = _column_number(first[1])
    for index, each in enumerate(table.descendants("x:tableColumn")):
        if place := attribute_range(part.data, each, "name"):
            cell = f"{column_name(column + index)}{first[2]}"
            yield TableHeader(part.name, _name(each), cell, *place)


def _name(column: XmlElement) -> str:
    return decoded(column.attributes.get("name", ""))


def _column_number(letters: str) -> int:
    number = 0
    for each in letters:
        number = number * 26 + ord(each) - ord("A") + 1
    return number


def column_name(number: int) -> str:
    """Return the letters of a column, from 1: `AB` for 28."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def unique(
    columns: Sequence[Sequence[tuple[str, int | None]]], texts: Sequence[str | None]
) -> list[str | None]:
    """Return the translations without those that would give a table two columns of one name.

    `columns` holds per table the name of each column and the segment that translates it.
    """
    kept = list(texts)
    changed = True
    while changed:
        changed = sum(_made_unique(each, kept) for each in columns) > 0
    return kept


def _made_unique(columns: Sequence[tuple[str, int | None]], texts: list[str | None]) -> bool:
    """Undo translations until the names of one table are unique; return whether any was."""
    taken: dict[str, int] = {}
    waiting = list(range(len(columns)))[::-1]
    undone = False
    while waiting:
        column = waiting.pop()
        name = _current(columns[column], texts)
        other = taken.setdefault(name, column)
        if other == column:
            continue
        loser = next((each for each in (column, other) if _is_new(columns[each], texts)), None)
        if loser is None:
            continue
        texts[columns[loser][1] or 0] = None
        undone = True
        taken[name] = other if loser == column else column
        waiting.append(loser)
    return undone


def _current(column: tuple[str, int | None], texts: Sequence[str | None]) -> str:
    name, segment = column
    text = None if segment is None else texts[segment]
    return (name if text is None else plain(text)).casefold()


def _is_new(column: tuple[str, int | None], texts: Sequence[str | None]) -> bool:
    return column[1] is not None and texts[column[1]] is not None
