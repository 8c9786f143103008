"""What DOCX, PPTX and XLSX share: namespaces, content types, drawings, the title."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import Kind, Remark, Segment
from dragoman_documents.office.package_codec import (
    Found,
    PackagePart,
    attribute_slot,
    opened,
    text_slot,
    wrong_type,
)
from dragoman_documents.office.paragraphs.filling import Names
from dragoman_documents.office.paragraphs.items import texts, trimmed
from dragoman_documents.office.paragraphs.reading import Dialect, Reader, raw_name
from dragoman_documents.office.paragraphs.writing import block
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.tree import XmlElement

_OFFICE: Final = "http://schemas.openxmlformats.org"
_STRICT: Final = "http://purl.oclc.org/ooxml"
_MAIN: Final = {
    "w": "wordprocessingml",
    "p": "presentationml",
    "x": "spreadsheetml",
    "a": "drawingml",
}
_OTHERS: Final = {
    "c": "drawingml/2006/chart",
    "cdr": "drawingml/2006/chartDrawing",
    "wp": "drawingml/2006/wordprocessingDrawing",
    "xdr": "drawingml/2006/spreadsheetDrawing",
    "dgm": "drawingml/2006/diagram",
    "r": "officeDocument/2006/relationships",
    "m": "officeDocument/2006/math",
}
PREFIXES: Final[dict[str, str]] = {
    **{f"{_OFFICE}/{name}/2006/main": prefix for prefix, name in _MAIN.items()},
    **{f"{_STRICT}/{name}/main": prefix for prefix, name in _MAIN.items()},
    **{f"{_OFFICE}/{name}": prefix for prefix, name in _OTHERS.items()},
    **{f"{_STRICT}/{name.replace('/2006', '')}": prefix for prefix, name in _OTHERS.items()},
    f"{_OFFICE}/markup-compatibility/2006": "mc",
    f"{_OFFICE}/package/2006/content-types": "",
    f"{_OFFICE}/package/2006/relationships": "",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://schemas.microsoft.com/office/drawing/2008/diagram": "dsp",
    "http://schemas.microsoft.com/office/drawing/2012/chart": "c15",
    "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    "urn:schemas-microsoft-com:vml": "v",
    "http://schemas.microsoft.com/office/excel/2006/main": "xm",
    "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main": "x14",
    "http://schemas.microsoft.com/office/word/2010/wordml": "w14",
    "http://schemas.microsoft.com/office/word/2012/wordml": "w15",
    "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments": "tc",
}
"""Per namespace, of the Transitional and of the Strict form, the prefix that the codecs use."""

_LINKS: Final = frozenset({"a:hlinkClick", "a:hlinkHover", "a:hlinkMouseOver"})
_TIPS: Final = "tooltips of links in a text stay as they are"

DRAWING: Final = Dialect(
    run="a:r",
    properties="a:rPr",
    text="a:t",
    ignored=frozenset({"lang", "altLang", "dirty", "err", "smtClean", "noProof", "kumimoji"}),
    outside=frozenset({"a:pPr", "a:endParaRPr"}),
)
"""Text in shapes, tables of slides and charts."""


def content_types(archive: Archive, wanted: str, *markers: str) -> dict[str, str]:
    """Return the content type of each part. Raises DocumentError (`wrong_type`).

    One of them must hold a marker and end with `.main+xml`.
    """
    if "[Content_Types].xml" not in archive:
        raise wrong_type(wanted)
    root = opened(archive, "[Content_Types].xml", PREFIXES).root
    by_suffix, by_name = {}, {}
    for each in root.children:
        kind = each.attributes.get("ContentType", "")
        if each.name == "Default":
            by_suffix[each.attributes.get("Extension", "").lower()] = kind
        else:
            name = each.attributes.get("PartName", "").replace("\\", "/")
            by_name[name.lstrip("/").lower()] = kind
    types = {
        name: by_name.get(name.lower()) or by_suffix.get(name.rpartition(".")[2].lower(), "")
        for name in archive.names
    }
    if not any(
        each.endswith(".main+xml") and any(marker in each for marker in markers)
        for each in types.values()
    ):
        raise wrong_type(wanted)
    return types


def of_type(types: dict[str, str], *ends: str) -> Iterator[str]:
    """Yield the names of the parts of some content types, numbered ones by their numbers."""
    found = [name for name, kind in types.items() if kind.endswith(ends)]
    yield from sorted(found, key=lambda name: (name.rpartition("/")[0], number(name), name))


def number(name: str) -> int:
    """Return the number in the name of a part, such as 12 of `slide12.xml`; else 0."""
    digits = "".join(filter(str.isdecimal, name.rpartition("/")[2]))
    return int(digits[:9] or 0)


def related(archive: Archive, name: str) -> dict[str, str]:
    """Return the parts to which a part refers, per id."""
    folder, _, file = name.rpartition("/")
    relations = f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels"
    if relations not in archive:
        return {}
    return {
        each.attributes.get("Id", ""): _resolved(
            folder, each.attributes.get("Target", "").replace("\\", "/")
        )
        for each in opened(archive, relations, PREFIXES).root.children
        if each.attributes.get("TargetMode") != "External"
    }


def _resolved(folder: str, target: str) -> str:
    if target.startswith("/"):
        return target[1:]
    parts = folder.split("/") if folder else []
    for each in target.split("/"):
        if each == "..":
            del parts[-1:]
        elif each != ".":
            parts.append(each)
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What is known of a paragraph beside its text."""

    place: str
    kind: Kind = "paragraph"
    doubled: bool = False
    headings: tuple[str, ...] = ()
    max_chars: int | None = None


def paragraph_slot(
    part: PackagePart, reader: Reader, element: XmlElement, about: Paragraph, *, whole: bool = False
) -> XmlSlot | None:
    """Return the slot of a paragraph; None if it has no text.

    With `whole` all of its content is replaced, and nothing beside the runs is kept.
    """
    items = reader.items(element)
    items = items if whole else trimmed(items)
    if next(texts(items), None) is None:
        return None
    found = block(
        part.data, items, _names(part, reader.dialect, element), element if whole else None
    )
    if not translatable(found.text):
        return None
    segment = Segment(
        found.text,
        about.place,
        about.kind,
        found.codes,
        about.max_chars,
        headings=about.headings,
        doubled=about.doubled,
    )
    return XmlSlot(segment, found.start, found.end, found.runs, part.name)


def _names(part: PackagePart, dialect: Dialect, element: XmlElement) -> Names:
    """Return the names of the paragraph's elements as the file spells them."""
    run = element.child(dialect.run) or next(element.descendants(dialect.run), None)
    text = run and run.child(dialect.text)
    text = text or next(element.descendants(dialect.text))
    return Names(
        None if run is None else raw_name(part.data, run),
        raw_name(part.data, text),
        spaced=not dialect.text.startswith("a:"),
        read=dialect.read,
        write=dialect.write,
    )


def drawing_slots(
    part: PackagePart, root: XmlElement, place: str, kind: Kind = "paragraph"
) -> Iterator[XmlSlot]:
    """Yield the slots of the paragraphs of DrawingML below an element."""
    reader = Reader(part.data, DRAWING)
    for element in root.descendants("a:p"):
        slot = paragraph_slot(part, reader, element, Paragraph(place, kind))
        if slot is not None:
            yield slot


def alternative_texts(part: PackagePart, element: XmlElement, place: str) -> Iterator[XmlSlot]:
    """Yield the slots of the alternative texts of a picture or a shape, and of its links' tips."""
    for attribute in ("descr", "title"):
        yield from attribute_slot(part, element, attribute, f"{place}, alternative text")
    for each in element.children:
        if each.name in _LINKS:
            yield from attribute_slot(part, each, "tooltip", f"{place}, tooltip")


def remark_tips(found: Found, part: PackagePart, place: str) -> None:
    """Add a remark for the tooltips of links in texts, which are a part of their formatting."""
    if b"tooltip=" not in part.data:
        return
    tips = [
        link.attributes.get("tooltip", "")
        for each in part.root.descendants("a:rPr")
        for link in each.children
        if link.name in _LINKS
    ]
    if count := sum(map(translatable, tips)):
        found.remarks.append(Remark(place, _TIPS, "attribute", count))


def add_diagrams(found: Found, archive: Archive, types: dict[str, str]) -> None:
    """Add SmartArt: the data, and the drawing that shows it.

    Each has segments of its own: equal texts have one translation, but nothing else says which
    shape of the drawing shows which point of the data.
    """
    for name in (*of_type(types, "diagramData+xml"), *of_type(types, "diagramDrawing+xml")):
        part = opened(archive, name, PREFIXES)
        slots = drawing_slots(part, part.root, f"diagram {number(name)}")
        found.add(part, [(slot,) for slot in slots])


def add_title(found: Found, archive: Archive) -> None:
    """Add the title among the properties of the document."""
    if "docProps/core.xml" in archive:
        part = opened(archive, "docProps/core.xml", PREFIXES)
        title = part.root.child("dc:title")
        found.add(part, [(slot,) for slot in text_slot(part, title, "title", "title")])


def remark_signature(found: Found, archive: Archive) -> None:
    """Add a remark if the document is signed."""
    if any(name.startswith("_xmlsignatures/") for name in archive.names):
        detail = "the digital signature no longer fits once it is translated"
        found.remark("document", detail, "signature")
