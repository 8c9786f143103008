"""Charts of DOCX, PPTX and XLSX: titles, labels, categories, names of series, shapes on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.office.ooxml import (
    PREFIXES,
    alternative_texts,
    drawing_slots,
    number,
    of_type,
    related,
)
from dragoman_documents.office.package_codec import Found, PackagePart, opened, text_slot
from dragoman_documents.values import is_text
from dragoman_documents.xml.slots import XmlSlot
from dragoman_documents.xml.tree import XmlElement, text_of

_SHOWN: Final = re.compile(
    rb"title|dLbl>|dispUnitsLbl>|strLit|txData|strDim|:name>|:tx>\s*<(?:\w+:)?v[ >]"
)
_DATA: Final = re.compile(rb"strCache|StrCache|datalabelsRange")
_TITLES: Final = frozenset({"c:title", "cx:title", "c:dLbl", "c:dispUnitsLbl"})
_TEXTS: Final = frozenset({
    "c:tx", "c:cat", "cx:strDim", "cx:tx", "c:trendline", "c15:datalabelsRange",
})  # fmt: skip
_FORMULAS: Final = frozenset({"c:f", "cx:f", "c15:f"})
"""Which cells a chart copies the texts beside from."""
_SHEET: Final = (
    "the sheet with the data of a chart stays in the source language, to which editing returns"
)


def add_charts(
    found: Found, archive: Archive, types: dict[str, str], *, data: bool = False
) -> None:
    """Add titles and labels of charts, and the categories and names of series that they hold.

    Most of these are copies of cells in a workbook: with `data` in one of the chart's own, which is
    left alone; without it in the workbook that the chart is in, from which Excel copies them again,
    so that they are left out.
    """
    for name in of_type(types, "drawingml.chart+xml", "ms-office.chartex+xml"):
        raw = archive.read(name)  # charts hold thousands of cached numbers
        if _SHOWN.search(raw) is None and not (data and _DATA.search(raw)):
            continue
        part = opened(archive, name, PREFIXES)
        place = f"chart {number(name)}, title"
        titles = list(part.root.descendants(*_TITLES))
        slots = [slot for each in titles for slot in drawing_slots(part, each, place, "title")]
        for value in (value for each in titles for value in each.descendants("cx:v")):
            slots += text_slot(part, value, place, "title")
        known = {each.start for each in slots}
        texts = _texts(part, number(name), known, copies=data)
        found.add(part, [*((slot,) for slot in slots), *texts])
        if (
            texts
            and data
            and any(".xls" in each.lower() for each in related(archive, name).values())
        ):
            found.remark(f"chart {number(name)}", _SHEET, "generated")
    _add_shapes(found, archive, types)


def _texts(
    part: PackagePart, chart: int, known: set[int], *, copies: bool
) -> list[tuple[XmlSlot, ...]]:
    """Return the slots of categories and names of series: all copies of one cell together.

    Equal texts of other places stay apart: two words may have one translation, and an output must
    have as many segments as its source.
    """
    place = f"chart {chart}, data"
    held: dict[tuple[str | int, ...], list[XmlSlot]] = {}
    for each in part.root.descendants(*_TEXTS):
        cells = _formula(part, each)
        for index, value in enumerate(_values(each, copies=copies)):
            for slot in text_slot(part, value, place, "cell"):
                if is_text(slot.segment.text) and slot.start not in known:
                    known.add(slot.start)
                    key = (cells, index, slot.segment.text) if cells else (slot.start,)
                    held.setdefault(key, []).append(slot)
    return [tuple(slots) for slots in held.values()]


def _formula(part: PackagePart, element: XmlElement) -> str:
    """Return which cells an element copies; empty if it does not."""
    found = next(element.descendants(*_FORMULAS), None)
    return "" if found is None else text_of(part.data[found.content : found.stop])


def _values(element: XmlElement, *, copies: bool) -> Iterator[XmlElement]:
    """Yield the elements with texts below one, copies of cells only if wanted."""
    if element.name == "c:trendline":
        yield from (each for each in element.children if each.name == "c:name")
        return
    waiting = [element]
    while waiting:
        each = waiting.pop()
        if each.name in {"c:v", "cx:v", "cx:pt"}:
            yield each
        elif copies or not any(below.name in _FORMULAS for below in each.children):
            waiting += reversed(each.children)


def _add_shapes(found: Found, archive: Archive, types: dict[str, str]) -> None:
    """Add the text boxes that somebody drew on a chart."""
    for name in of_type(types, "drawingml.chartshapes+xml"):
        part = opened(archive, name, PREFIXES)
        place = f"drawing {number(name)} of a chart"
        slots = [
            *(
                slot
                for each in part.root.descendants("cdr:cNvPr")
                for slot in alternative_texts(part, each, place)
            ),
            *drawing_slots(part, part.root, place),
        ]
        found.add(part, [(slot,) for slot in slots])
