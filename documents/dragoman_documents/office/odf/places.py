"""Where a paragraph of an OpenDocument file is, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_documents.office.xlsx.tables import column_name
from dragoman_documents.xml.tree import XmlElement

_MOST: Final = 2**20
"""Rows or columns that one element may stand for."""
_CELLS: Final = frozenset({"table:table-cell", "table:covered-table-cell"})


@dataclass(slots=True)
class OdfPlaces:
    """Counts paragraphs, slides, or rows and columns, as the parts of a document are entered."""

    kind: str
    paragraph: int = 0
    slide: int = 0
    sheet: str = ""
    row: int = 0
    column: int = 0
    in_notes: bool = False
    message: str = ""
    """The cell whose rule for its values has messages."""
    _rows: int = 1

    def __str__(self) -> str:
        """Return `sheet Sales, B7`, `slide 3` or `paragraph 12`."""
        if self.message:
            return f"message of {self.message}"
        if self.kind == "spreadsheet" and self.sheet:
            return f"sheet {self.sheet}, {column_name(max(1, self.column))}{max(1, self.row)}"
        if self.slide:
            return f"slide {self.slide}" + (", notes" if self.in_notes else "")
        return f"paragraph {self.paragraph}"

    def enter(self, element: XmlElement) -> None:
        """Count an element."""
        name = element.name
        self.paragraph += name in {"text:p", "text:h"}
        self.slide += name == "draw:page"
        self.in_notes |= name == "presentation:notes"
        if name == "table:content-validation":
            self.message = element.attributes.get("table:base-cell-address", "cells")
        elif name == "table:table":
            self.sheet, self.row, self._rows = element.attributes.get("table:name", ""), 0, 1
        elif name == "table:table-row":
            self.row, self.column = self.row + self._rows, 0
            self._rows = _repeated(element, "table:number-rows-repeated")
        elif name in _CELLS:
            self.column += 1

    def leave(self, element: XmlElement) -> None:
        """Count what a cell stands for, and leave the notes of a slide."""
        if element.name == "table:content-validation":
            self.message = ""
        elif element.name == "presentation:notes":
            self.in_notes = False
        elif element.name in _CELLS:
            self.column += _repeated(element, "table:number-columns-repeated") - 1


def _repeated(element: XmlElement, name: str) -> int:
    digits = element.attributes.get(name, "1")
    return min(int(digits), _MOST) if digits.isdecimal() and len(digits) < 9 else 1
