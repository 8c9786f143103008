"""PPTX: slides, notes, tables, the titles of charts, SmartArt, alternative texts, the title."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import Codec, Kind, Options
from dragoman_documents.inline_codes import plain
from dragoman_documents.office.charts import add_charts
from dragoman_documents.office.ooxml import (
    DRAWING,
    PREFIXES,
    Paragraph,
    add_diagrams,
    add_title,
    alternative_texts,
    content_types,
    number,
    of_type,
    paragraph_slot,
    related,
    remark_signature,
    remark_tips,
)
from dragoman_documents.office.package_codec import (
    Found,
    PackageCodec,
    PackagePart,
    headless,
    opened,
)
from dragoman_documents.office.paragraphs.reading import Reader
from dragoman_documents.xml.slots import XmlSlot
from dragoman_documents.xml.tree import XmlElement

_TITLES: Final = {"title", "ctrTitle"}
_CONTENTS: Final = {"a:p", "a:tc", "p:sp", "p:cNvPr", "p:graphicFrame"}


def _found(archive: Archive, options: Options) -> Found:
    types = content_types(archive, "PowerPoint presentation", "presentationml", "ms-powerpoint")
    found, title = Found(), ""
    for name, place in _ordered(archive, types):
        part = opened(archive, name, PREFIXES)
        notes = "notesSlide" in types[name]
        slots = list(_slots(part, place, notes=notes))
        if options.headings:
            title = title if notes else _title(slots)
            slots = [_below(title, slot) for slot in slots]
        found.add(part, [(slot,) for slot in slots])
        remark_tips(found, part, place)
    add_charts(found, archive, types, data=True)
    add_diagrams(found, archive, types)
    add_title(found, archive)
    remark_signature(found, archive)
    return found


def _ordered(archive: Archive, types: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the slides with their places, each with its notes after it."""
    notes = set(of_type(types, "presentationml.notesSlide+xml"))
    for index, name in enumerate(_slides(archive, types), 1):
        yield name, f"slide {index}"
        for each in related(archive, name).values():
            if each in notes:
                notes.remove(each)
                yield each, f"slide {index}, notes"
    for name in sorted(notes):
        yield name, f"notes {number(name)}"


def _slides(archive: Archive, types: dict[str, str]) -> Iterator[str]:
    """Yield the slides in the order of the presentation, then those that it does not name.

    Raises DocumentError (`corrupt`) if there is no presentation, or none of its slides.
    """
    left = dict.fromkeys(of_type(types, "presentationml.slide+xml"))
    lacks, is_presentation = not left, False
    for book in of_type(types, ".main+xml"):
        targets, root = related(archive, book), opened(archive, book, PREFIXES).root
        is_presentation |= root.name == "p:presentation"
        for each in root.descendants("p:sldId"):
            if lacks:
                raise headless(book, "slide")
            name = targets.get(each.attributes.get("r:id", ""), "")
            if name in left:
                del left[name]
                yield name
    if not is_presentation:
        raise headless("the main part", "presentation")
    yield from left


def _slots(part: PackagePart, place: str, *, notes: bool) -> Iterator[XmlSlot]:
    reader = Reader(part.data, DRAWING)
    usual: Kind = "note" if notes else "paragraph"
    kind, title = usual, 0
    for element in part.root.descendants(*_CONTENTS):
        if element.name == "p:cNvPr":
            yield from alternative_texts(part, element, place)
        elif element.name == "a:tc":
            kind = "cell"
        elif element.name == "a:p":
            about = Paragraph(place, "title" if element.start < title else kind)
            slot = paragraph_slot(part, reader, element, about)
            if slot is not None:
                yield slot
        else:
            kind, title = usual, element.end if _is_title(element) else 0


def _title(slots: Sequence[XmlSlot]) -> str:
    """Return the text of a slide's title; empty without one."""
    titles = (each.segment.text for each in slots if each.segment.kind == "title")
    return plain(next(titles, ""))


def _below(title: str, slot: XmlSlot) -> XmlSlot:
    if not title or slot.segment.kind == "title":
        return slot
    return slot._replace(segment=slot.segment._replace(headings=(title,)))


def _is_title(shape: XmlElement) -> bool:
    marks = shape.descendants("p:ph") if shape.name == "p:sp" else ()
    return any(each.attributes.get("type") in _TITLES for each in marks)


CODECS: Final[Mapping[str, Codec]] = {
    "pptx": PackageCodec("pptx", frozenset({".pptx", ".pptm", ".potx", ".ppsx", ".ppsm"}), _found)
}
