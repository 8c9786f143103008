"""XLSX: shared and inline strings, headers of tables, titles of charts, comments, text boxes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import Codec, Kind, Options, Remark
from dragoman_documents.inline_codes import plain
from dragoman_documents.office.charts import add_charts
from dragoman_documents.office.ooxml import (
    PREFIXES,
    Paragraph,
    add_diagrams,
    add_title,
    alternative_texts,
    content_types,
    drawing_slots,
    number,
    of_type,
    paragraph_slot,
    remark_signature,
    remark_tips,
)
from dragoman_documents.office.package_codec import (
    Found,
    PackageCodec,
    PackagePart,
    PlainFilling,
    PlainName,
    attribute_slot,
    opened,
    text_slot,
)
from dragoman_documents.office.paragraphs.reading import Dialect, Reader
from dragoman_documents.office.xlsx import text as xlsx_text
from dragoman_documents.office.xlsx.sheets import NAMED, Formulas, Sheet, read, sheets
from dragoman_documents.office.xlsx.tables import (
    LONGEST,
    Table,
    tables,
    unique,
)
from dragoman_documents.values import is_address, is_formula
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.tree import XmlElement, content_of, source

_STRINGS: Final = Dialect(
    run="x:r",
    properties="x:rPr",
    text="x:t",
    outside=frozenset({"x:rPh", "x:phoneticPr"}),
    read=xlsx_text.read,
    write=xlsx_text.write,
)
_MESSAGES: Final = {
    "promptTitle": 32, "prompt": 255, "errorTitle": 32, "error": 255, "tooltip": 255,
}  # fmt: skip
"""Attributes of a rule for the values of cells or of a link, and how long Excel reads them."""
_PRINTED: Final = "headers and footers for printing stay as they are"
_CAPTION: Final = re.compile(rb"<font(?: [^<>]*)?>([^<>]*)</font>")
_CONTROLS: Final = "captions of buttons and other controls on sheets stay as they are"
Text = tuple[str, int] | tuple[str, str]
"""Where a cell's text is: its part, and the number of the shared string or the cell."""


@dataclass(slots=True)
class _Book(Found):
    """What has been found in a workbook."""

    formulas: Formulas = field(default_factory=Formulas)
    sheets: list[Sheet] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    cells: dict[Text, int] = field(default_factory=dict)
    """The segment of each shared string and of each inline string."""
    columns: list[list[tuple[str, int | None]]] = field(default_factory=list)


def _found(archive: Archive, options: Options) -> Found:
    del options
    types = content_types(archive, "Excel workbook", "spreadsheetml", "ms-excel")
    book = _Book()
    _read_sheets(book, archive, types)
    kept = set(_kept(book))
    _add_shared(book, archive, types, kept)
    for sheet in book.sheets:
        _add_sheet(book, archive, sheet, kept)
    _join_headers(book)
    _add_comments(book, archive, types)
    _add_drawings(book, archive, types)
    add_charts(book, archive, types)
    add_diagrams(book, archive, types)
    add_title(book, archive)
    remark_signature(book, archive)
    _remark_left(book, archive, types)
    if any(of_type(types, "pivotCacheDefinition+xml")):
        detail = "its pivot tables name columns by their headers; set them up again"
        book.remark("document", detail, "generated")
    return book


def _remark_left(book: _Book, archive: Archive, types: dict[str, str]) -> None:
    """Add remarks for texts that readers see and that stay."""
    for sheet in book.sheets:
        if sheet.printed:
            place = f"sheet {sheet.name}"
            book.remarks.append(Remark(place, _PRINTED, "directive", sheet.printed))
    for name in of_type(types, "vmlDrawing"):
        captions = _CAPTION.findall(archive.read(name))
        found = (content_of(raw.decode("utf-8", "replace")) for raw in captions)
        if count := sum(map(translatable, found)):
            book.remarks.append(Remark(f"drawing {number(name)}", _CONTROLS, "html", count))


def _read_sheets(book: _Book, archive: Archive, types: dict[str, str]) -> None:
    seen: set[str] = set()
    for sheet in sheets(archive, types, book.formulas):
        found = list(tables(archive, types, sheet.part, book.formulas, seen))
        cells = frozenset(header.cell for table in found for header in table.headers)
        read(archive, sheet, cells, book.formulas)
        book.sheets.append(sheet)
        book.tables += found


def _kept(book: _Book) -> Iterator[Text]:
    """Yield the texts that formulas need as they are, because they name a column by them."""
    by_part = {sheet.part: sheet for sheet in book.sheets}
    for table in book.tables:
        for header in table.headers:
            if header.name.casefold() in book.formulas.columns:
                yield _key(by_part[table.sheet], header.cell)


def _key(sheet: Sheet, cell: str) -> Text:
    """Return where the text of a cell is."""
    index = sheet.headers.get(cell)
    return (sheet.part, cell) if index is None else ("", index)


def _add_shared(
    book: _Book, archive: Archive, types: dict[str, str], kept: Collection[Text]
) -> None:
    """Add the shared strings that a cell shows."""
    places: dict[int, str] = {}
    for sheet in book.sheets:
        for index, cell in sheet.strings.items():
            places.setdefault(index, f"sheet {sheet.name}, {cell}")
    for name in of_type(types, "spreadsheetml.sharedStrings+xml"):
        part = opened(archive, name, PREFIXES)
        book.add(part, [])
        strings = (each for each in part.root.children if each.name == "x:si")
        for index, each in enumerate(strings):
            if index in places:
                _add_text(book, part, each, places[index], key=("", index), kept=kept)


def _add_sheet(book: _Book, archive: Archive, sheet: Sheet, kept: Collection[Text]) -> None:
    """Add the strings that are in the cells themselves, and the messages of cells."""
    if not sheet.has_inline and not sheet.messages:
        return
    if sheet.has_inline:
        part = opened(archive, sheet.part, PREFIXES)
    else:  # no tree: the sheet may have millions of cells
        part = PackagePart(sheet.part, source(archive.read(sheet.part)), XmlElement("", {}, 0, 0))
    book.add(part, [])
    for cell in part.root.descendants("x:c"):
        content = cell.child("x:is")
        if content is not None and cell.attributes.get("t") == "inlineStr":
            name = cell.attributes.get("r", "")
            place = f"sheet {sheet.name}, {name}"
            _add_text(book, part, content, place, key=(sheet.part, name), kept=kept)
    for each in sheet.messages:
        cells = (each.attributes.get("sqref") or each.attributes.get("ref", ""))[:40]
        place = f"sheet {sheet.name}, message of {cells}".removesuffix(" of ")
        book.slots += ((slot,) for slot in _messages(part, each, place))


def _messages(part: PackagePart, element: XmlElement, place: str) -> Iterator[XmlSlot]:
    """Yield the slots of what a cell shows when it is pointed at, chosen, or refuses a value."""
    for name, longest in _MESSAGES.items():
        for slot in attribute_slot(part, element, name, place):
            text = xlsx_text.decoded(slot.segment.text)
            segment = slot.segment._replace(text=text, max_chars=longest)
            raw = part.data[slot.start : slot.end].decode()
            writer = PlainFilling(raw, xlsx_text.read_value, xlsx_text.write_value)
            yield slot._replace(segment=segment, writer=writer)


def _add_text(
    book: _Book,
    part: PackagePart,
    element: XmlElement,
    place: str,
    *,
    key: Text,
    kept: Collection[Text],
) -> None:
    slot = _string(part, element, place)
    if slot is None:
        return
    if key in kept:
        book.remark(place, "formulas name a column by this header; it is left as it is", "name")
        return
    text = plain(slot.segment.text)
    if is_formula(text) or is_address(text):
        return
    if book.formulas.name(text):
        book.remark(place, NAMED, "name")
        return
    book.cells[key] = len(book.slots)
    book.slots.append((slot,))


def _string(
    part: PackagePart, element: XmlElement, place: str, kind: Kind = "cell"
) -> XmlSlot | None:
    """Return the slot of a string; phonetic runs in it are lost when it is written."""
    reader = Reader(part.data, _STRINGS)
    return paragraph_slot(part, reader, element, Paragraph(place, kind), whole=True)


def _join_headers(book: _Book) -> None:
    """Let the names of columns follow the cells that are their headers."""
    by_part = {sheet.part: sheet for sheet in book.sheets}
    for table in book.tables:
        book.parts.append(table.part)
        columns: list[tuple[str, int | None]] = []
        for header in table.headers:
            segment = book.cells.get(_key(by_part[table.sheet], header.cell))
            columns.append((header.name, segment))
            if segment is not None:
                first, *others = book.slots[segment]
                first = first._replace(segment=first.segment._replace(max_chars=LONGEST))
                raw = table.part.data[header.start : header.end].decode()
                writer = PlainName(raw, xlsx_text.read_value, xlsx_text.write_value)
                name = XmlSlot(first.segment, header.start, header.end, writer, header.table)
                book.slots[segment] = (first, *others, name)
        book.columns.append(columns)


def _add_comments(found: Found, archive: Archive, types: dict[str, str]) -> None:
    for name in of_type(types, "spreadsheetml.comments+xml"):
        part = opened(archive, name, PREFIXES)
        slots = (
            _string(part, text, f"comment at {each.attributes.get('ref', '')}", "note")
            for each in part.root.descendants("x:comment")
            for text in each.children
            if text.name == "x:text"
        )
        found.add(part, [(slot,) for slot in slots if slot is not None])
    for name in of_type(types, "threadedcomments+xml"):
        part = opened(archive, name, PREFIXES)
        found.add(
            part,
            [
                (slot,)
                for each in part.root.children
                for slot in text_slot(
                    part, each.child("tc:text"), f"comment at {each.attributes.get('ref')}", "note"
                )
            ],
        )


def _add_drawings(found: Found, archive: Archive, types: dict[str, str]) -> None:
    for name in of_type(types, "officedocument.drawing+xml"):
        part = opened(archive, name, PREFIXES)
        place = f"drawing {number(name)}"
        slots = (
            *(
                slot
                for each in part.root.descendants("xdr:cNvPr")
                for slot in alternative_texts(part, each, place)
            ),
            *drawing_slots(part, part.root, place),
        )
        found.add(part, [(slot,) for slot in slots])
        remark_tips(found, part, place)


def _allowed(found: Found, texts: Sequence[str | None]) -> list[str | None]:
    """Leave out what Excel would refuse: texts too long, two columns of one name in a table."""
    texts = [
        None if text and len(text) > (slots[0].segment.max_chars or len(text)) else text
        for text, slots in zip(texts, found.slots, strict=True)
    ]
    return unique(found.columns, texts) if isinstance(found, _Book) else list(texts)


CODECS: Final[Mapping[str, Codec]] = {
    "xlsx": PackageCodec(
        "xlsx", frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"}), _found, filter=_allowed
    )
}
