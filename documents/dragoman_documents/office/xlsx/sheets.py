"""Sheets of a workbook: which cell shows which string, and what formulas say about texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.office.ooxml import PREFIXES, related
from dragoman_documents.office.package_codec import headless, opened
from dragoman_documents.xml.tree import (
    XmlElement,
    scanned,
    source,
    start_tag_end,
    text_of,
)
from dragoman_text.spans import has_words

_LITERAL: Final = re.compile(r'"((?:[^"]|"")*)"')
_COLUMN: Final = re.compile(r"\[((?:[^\[\]']|'.)+)\]")
_LONGEST: Final = 256
"""Characters of a literal at most, by the rules of Excel."""
_FEW: Final = 16
_WORD: Final = re.compile(r"[^\W\d_]{2}")
NAMED: Final = "a formula, a filter or a list of allowed values names this text; it stays as it is"
_QUOTED: Final = re.compile(r"'(.)")
_FORMULAS: Final = frozenset({"x:f", "x:formula", "x:formula1", "x:formula2", "xm:f"})
_SHOWING: Final = frozenset({"x:dataValidation", "x14:dataValidation", "x:hyperlink"})
_PRINTED: Final = frozenset(
    f"x:{page}{part}" for page in ("odd", "even", "first") for part in ("Header", "Footer")
)
_PRINTING: Final = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|[A-Za-z&])')
"""Codes in headers and footers: fonts, colors, parts, numbers of pages, dates."""
_FILTERS: Final = frozenset({"x:filter", "x:customFilter"})


@dataclass(slots=True)
class Formulas:
    """Texts and columns that formulas, filters and lists of allowed values name, casefolded."""

    texts: set[str] = field(default_factory=set)
    beginnings: set[str] = field(default_factory=set)
    """Of texts that a criterion with an asterisk at its end names: `Open*`."""
    ends: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)

    def add(self, formula: str) -> None:
        """Add what a formula names."""
        for match in _LITERAL.finditer(formula):
            text = match[1].replace('""', '"')
            self.add_text(text)
            for each in text.split(","):
                self.add_text(each.strip())
        if "[" in formula:
            names = _COLUMN.findall(formula)
            self.columns.update(_QUOTED.sub(r"\1", each.lstrip("@")).casefold() for each in names)

    def add_text(self, text: str) -> None:
        """Add a text, or a criterion such as `<>Open` or `Open*`."""
        text = text.casefold()
        self.texts.update((text, text.lstrip("<>=")))
        text = text.lstrip("<>=")[:_LONGEST]
        if text.endswith("*") and _WORD.search(text):
            self.beginnings.add(text.rstrip("*"))
        if text.startswith("*") and _WORD.search(text):
            self.ends.add(text.lstrip("*"))

    def name(self, text: str) -> bool:
        """Return whether they name a text, so that another one would give other results."""
        text = text.casefold()
        return (
            text in self.texts
            or any(text[:size] in self.beginnings for size in _sizes(self.beginnings))
            or any(text[-size:] in self.ends for size in _sizes(self.ends))
        )


def _sizes(some: Collection[str]) -> Collection[int]:
    return set(map(len, some)) if len(some) < _FEW else range(1, _LONGEST)


@dataclass(slots=True)
class Sheet:
    """A sheet of a workbook."""

    name: str
    part: str
    strings: dict[int, str] = field(default_factory=dict)
    """The first cell that shows each shared string."""
    headers: dict[str, int] = field(default_factory=dict)
    """The shared string of each cell that is a header of a table."""
    has_inline: bool = False
    messages: list[XmlElement] = field(default_factory=list)
    """Rules for the values of cells, and links: what they show is in attributes."""
    printed: int = 0
    """Headers and footers for printing with words in them."""


def sheets(archive: Archive, types: Mapping[str, str], formulas: Formulas) -> Iterator[Sheet]:
    """Yield the sheets in the order of the workbook, not yet read; each part once.

    Raises DocumentError (`corrupt`) if there is no sheet, not even one of another kind.
    """
    seen: set[str] = set()
    kinds: set[str] = set()
    books = (name for name, kind in types.items() if kind.endswith(".main+xml"))
    for book in books:
        targets = related(archive, book)
        part = opened(archive, book, PREFIXES)
        for each in part.root.descendants("x:definedName"):
            formulas.add(text_of(part.data[each.content : each.stop]))
        for each in part.root.descendants("x:sheet"):
            name = targets.get(each.attributes.get("r:id", ""), "")
            kinds.add(types.get(name, ""))
            if name not in seen and types.get(name, "").endswith("worksheet+xml"):
                seen.add(name)
                yield Sheet(each.attributes.get("name", ""), name)
    if not any(each.endswith("sheet+xml") for each in kinds):
        raise headless("the workbook", "sheet")


def read(archive: Archive, sheet: Sheet, headers: frozenset[str], formulas: Formulas) -> None:
    """Read the cells and formulas of a sheet, without a tree: it may have millions of cells."""
    data = source(archive.read(sheet.part)).data
    reading = _Reading(data, sheet, headers, formulas)
    scanned(data, PREFIXES, reading.start, reading.end, what=sheet.part)


@dataclass(slots=True)
class _Reading:
    data: bytes
    sheet: Sheet
    headers: frozenset[str]
    formulas: Formulas
    cell: str = ""
    is_shared: bool = False
    content: int = 0

    def start(self, name: str, attributes: Mapping[str, str], position: int) -> None:
        if name == "x:c":
            self.cell = attributes.get("r", "")
            kind = attributes.get("t")
            self.is_shared = kind == "s"
            self.sheet.has_inline |= kind == "inlineStr"
        elif name == "x:v" or name in _FORMULAS:
            self.content = self.data.index(b">", position) + 1
        elif name in _SHOWING:
            end = start_tag_end(self.data, position)
            self.sheet.messages.append(XmlElement(name, dict(attributes), position, end))
        elif name in _PRINTED:
            self.content = self.data.index(b">", position) + 1
        elif name in _FILTERS:
            self.formulas.add_text(attributes.get("val", ""))

    def end(self, name: str, position: int) -> None:
        if name == "x:v":
            if self.is_shared:
                self._shared(self.data[self.content : position])
        elif name in _FORMULAS and self.content <= position:
            self.formulas.add(text_of(self.data[self.content : position]))
        elif name in _PRINTED and self.content <= position:
            text = text_of(self.data[self.content : position])
            self.sheet.printed += has_words(_PRINTING.sub("", text))

    def _shared(self, digits: bytes) -> None:
        if not digits.strip().isdigit() or len(digits) > 12:
            return
        index = int(digits)
        self.sheet.strings.setdefault(index, self.cell)
        if self.cell in self.headers:
            self.sheet.headers[self.cell] = index
