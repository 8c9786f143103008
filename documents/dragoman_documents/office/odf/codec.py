"""ODT, ODS and ODP: paragraphs, headings, cells, notes, headers, alternative texts, the title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import Codec, DocumentError, InlineCode, Kind, Options, Segment
from dragoman_documents.inline_codes import plain, rendered
from dragoman_documents.office.bilingual import Doubled
from dragoman_documents.office.odf.others import HOLDERS, others, remarks
from dragoman_documents.office.odf.places import OdfPlaces
from dragoman_documents.office.package_codec import (
    Found,
    PackageCodec,
    PackagePart,
    PlainName,
    attribute_slot,
    headless,
    opened,
    text_slot,
    wrong_type,
)
from dragoman_documents.office.xlsx.sheets import NAMED, Formulas
from dragoman_documents.values import is_address, is_formula
from dragoman_documents.xml.inline import InlineRules, mixed
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.tree import XmlElement, attribute_range, escaped_value, value_of

_ODF: Final = "urn:oasis:names:tc:opendocument:xmlns"
PREFIXES: Final[dict[str, str]] = {
    **{
        f"{_ODF}:{name}:1.0": name
        for name in (
            *("office", "text", "table", "style", "chart", "presentation", "manifest", "form"),
        )
    },
    f"{_ODF}:drawing:1.0": "draw",
    f"{_ODF}:svg-compatible:1.0": "svg",
    "http://openoffice.org/2009/office": "officeooo",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_TYPE: Final = "application/vnd.oasis.opendocument."
_PAIRS: Final = frozenset({
    "text:span", "text:a", "text:meta", "text:placeholder", "text:text-input",
    "text:execute-macro",
})  # fmt: skip
"""Among them fields with a text that somebody typed, to be filled in or chosen."""
_LEFT_ALONE: Final = frozenset({
    "text:tracked-changes", "office:annotation", "office:forms", "office:scripts",
    "office:font-face-decls", "office:automatic-styles", "text:index-body", "office:styles",
    "table:tracked-changes", "text:alphabetical-index-source",
})  # fmt: skip
_HEADERS: Final = frozenset({
    "style:header", "style:header-left", "style:header-first", "style:footer",
    "style:footer-left", "style:footer-first",
})  # fmt: skip
_BLANK: Final = re.compile(
    r"<text:(?P<kind>s|tab|line-break)\b(?:[^>]*?\btext:c=[\"'](?P<count>[0-9]{1,4})[\"'])?"
)
_IDS_OF_REVISIONS: Final = frozenset({"officeooo:rsid", "officeooo:paragraph-rsid"})


def _found(archive: Archive, options: Options, *, kind: str, label: str) -> Found:
    _check(archive, kind, label)
    found = Found()
    for name in _contents(archive):
        part = opened(archive, name, PREFIXES)
        walk = _Walk(part, found, options, _rules(part.root), OdfPlaces(kind))
        if name == "content.xml":
            if part.root.child("office:body") is None:
                raise headless(name, "body")
            walk.note_formulas()
        roots = _roots(part.root, name)
        found.add(part, [slots for each in roots for slots in walk.below(each)])
    if "meta.xml" in archive:
        part = opened(archive, "meta.xml", PREFIXES)
        title = next(part.root.descendants("dc:title"), None)
        found.add(part, [(slot,) for slot in text_slot(part, title, "title", "title")])
    if "META-INF/documentsignatures.xml" in archive:
        detail = "the digital signature no longer fits once it is translated"
        found.remark("document", detail, "signature")
    return found


def _check(archive: Archive, kind: str, label: str) -> None:
    mark = archive.read("mimetype").strip() if "mimetype" in archive else b""
    if not mark.startswith(f"{_TYPE}{kind}".encode()) or "content.xml" not in archive:
        raise wrong_type(f"OpenDocument {label}")
    manifest = "META-INF/manifest.xml"
    if manifest in archive and b"encryption-data" in archive.read(manifest):
        raise DocumentError(
            "encrypted", "the document is protected by a password; save it without one"
        )


def _contents(archive: Archive) -> Iterator[str]:
    """Yield the parts with text: the content, headers and footers, charts in the document."""
    yield from (each for each in ("content.xml", "styles.xml") if each in archive)
    yield from (each for each in archive.names if each.endswith("/content.xml"))


def _roots(root: XmlElement, name: str) -> Iterator[XmlElement]:
    if name == "content.xml":
        yield root
    elif name == "styles.xml":
        yield from root.descendants(*_HEADERS)
    else:
        yield from root.descendants("chart:title", "chart:subtitle")


def _rules(root: XmlElement) -> InlineRules:
    """Return the rules of a part; styles that only have ids of revisions mean nothing."""
    empty = {
        style.attributes.get("style:name", "")
        for style in root.descendants("style:style")
        if style.attributes.get("style:family") == "text"
        and "style:parent-style-name" not in style.attributes
        and all(_IDS_OF_REVISIONS.issuperset(each.attributes) for each in style.children)
    }
    return InlineRules(
        _PAIRS,
        core=lambda each: each.child("text:ruby-base") if each.name == "text:ruby" else None,
        transparent=lambda each: (
            each.name == "text:span" and each.attributes.get("text:style-name") in empty
        ),
    )


@dataclass(slots=True)
class _Walk:
    """Goes through the paragraphs of a part in their order."""

    part: PackagePart
    found: Found
    options: Options
    rules: InlineRules
    places: OdfPlaces
    formulas: Formulas | None = None
    headings: list[tuple[int, str]] = field(default_factory=list)
    values: set[int] = field(default_factory=set)
    """The cells whose value is that of their paragraph."""

    def note_formulas(self) -> None:
        """Note the texts with which formulas compare."""
        self.formulas = Formulas()
        for cell in self.part.root.descendants("table:table-cell"):
            self.formulas.add(cell.attributes.get("table:formula", ""))
        for each in self.part.root.descendants("table:content-validation"):
            self.formulas.add(each.attributes.get("table:condition", ""))
        for each in self.part.root.descendants("table:named-expression"):
            self.formulas.add(each.attributes.get("table:expression", ""))
        for each in self.part.root.descendants("table:filter-condition"):
            self.formulas.add_text(each.attributes.get("table:value", ""))

    def below(self, element: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        """Yield the slots of the segments below an element."""
        for each in element.children:
            self.places.enter(each)
            if each.name in HOLDERS:
                self.found.remarks += remarks(self.part, each, str(self.places))
                yield from others(self.part, each, str(self.places))
            if each.name in {"text:p", "text:h"}:
                yield from self._paragraph(each, element)
            elif each.name not in _LEFT_ALONE and not _is_value(each):
                yield from self.below(each)
                yield from self._cell(each)
            self.places.leave(each)

    def _cell(self, element: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        """Yield the slot of a cell's value that is in no paragraph: LibreOffice shows the value."""
        value = element.attributes.get("office:string-value", "")
        if element.name != "table:table-cell" or not value or element.start in self.values:
            return
        place = str(self.places)
        if not self._stays(element, value, place):
            for slot in attribute_slot(self.part, element, "office:string-value", place):
                yield (slot._replace(segment=slot.segment._replace(kind="cell")),)

    def _paragraph(self, element: XmlElement, parent: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        found = mixed(self.part.data, element, self.rules)
        place = str(self.places)
        inside = list(self.below(element))
        if translatable(found.text) and not self._stays(parent, found.text, place):
            kind = _kind(element, parent, self.places)
            segment = Segment(
                found.text, place, kind, found.codes, headings=self._above(element), doubled=False
            )
            self._enter(element, found.text)
            slot = XmlSlot(segment, element.content, element.stop, found.writer, self.part.name)
            if self.options.bilingual:
                slot = self._doubled(slot, element, [each for slots in inside for each in slots])
            yield (slot, *self._value(slot, parent))
        yield from inside

    def _above(self, element: XmlElement) -> tuple[str, ...]:
        """Return the headings above a paragraph of a text; a heading ends those of its level."""
        if not self.options.headings or self.places.kind != "text":
            return ()
        if element.name == "text:h":
            level = _level(element)
            self.headings = [each for each in self.headings if each[0] < level]
        return tuple(text for _, text in self.headings)

    def _enter(self, element: XmlElement, text: str) -> None:
        if element.name == "text:h" and self.part.name == "content.xml":
            self.headings.append((_level(element), plain(text)))

    def _stays(self, parent: XmlElement, text: str, place: str) -> bool:
        """Return whether a cell holds a formula or an address, or what a formula knows it by."""
        if self.formulas is None or parent.name != "table:table-cell":
            return False
        named = self.formulas.name(text)
        if named:
            self.found.remark(place, NAMED, "name")
        stays = named or is_formula(plain(text)) or is_address(plain(text))
        if stays:
            self.values.add(parent.start)
        return stays

    def _doubled(self, slot: XmlSlot, element: XmlElement, inside: Sequence[XmlSlot]) -> XmlSlot:
        """Return the slot of a paragraph with its translation in a copy after it, or at its end."""
        data = self.part.data
        if inside:
            return Doubled.in_line(slot, data, b"<text:line-break/>", inside)
        style = attribute_range(data, element, "text:style-name")
        named = b' text:style-name="' + data[slice(*style)] + b'"' if style else b""
        writer = Doubled(
            slot.writer, data, b"<text:p" + named + b">", b"</text:p>", slot.start, slot.end
        )
        segment = slot.segment._replace(doubled=True)
        return slot._replace(segment=segment, writer=writer, start=element.end, end=element.end)

    def _value(self, slot: XmlSlot, cell: XmlElement) -> Iterator[XmlSlot]:
        """Yield the slot of a cell's value, if it is that of its one paragraph."""
        value = cell.attributes.get("office:string-value")
        if value is None:
            return
        codes = tuple(map(_shown, slot.segment.codes))
        paragraphs = (each for each in cell.children if each.name == "text:p")
        text = rendered(slot.segment.text, codes, str)
        same = text == (value if codes else value.strip())
        place = attribute_range(self.part.data, cell, "office:string-value")
        if same and len(list(islice(paragraphs, 2))) == 1 and place:
            self.values.add(cell.start)
            writer = PlainName(
                self.part.data[slice(*place)].decode(), value_of, escaped_value, codes
            )
            yield XmlSlot(slot.segment, *place, writer, self.part.name)


def _shown(code: InlineCode) -> InlineCode:
    """Return what a value has in place of a code: the blanks that it stands for, else nothing."""
    blank = _BLANK.match(code.opening)
    if blank is None:
        return InlineCode("", None if code.closing is None else "")
    count = int(blank["count"] or 1)
    return InlineCode({"s": " " * count, "tab": "\t", "line-break": "\n"}[blank["kind"]])


def _is_value(element: XmlElement) -> bool:
    """Return whether an element is a cell with a number, a date or the result of a formula."""
    if element.name not in {"table:table-cell", "table:covered-table-cell"}:
        return False
    kind = element.attributes.get("office:value-type", "string")
    return kind != "string" or "table:formula" in element.attributes


def _level(heading: XmlElement) -> int:
    digits = heading.attributes.get("text:outline-level", "1")
    return int(digits) if digits.isdecimal() and len(digits) < 3 else 1


def _kind(element: XmlElement, parent: XmlElement, places: OdfPlaces) -> Kind:
    if element.name == "text:h":
        return "heading"
    if parent.name == "table:table-cell":
        return "cell"
    if parent.name == "text:list-item":
        return "list_item"
    return "note" if places.in_notes else "paragraph"


@dataclass(frozen=True, slots=True)
class _Finder:
    """Reads documents of one kind."""

    kind: str
    label: str

    def __call__(self, archive: Archive, options: Options) -> Found:
        """Return the parts of a document with their slots."""
        return _found(archive, options, kind=self.kind, label=self.label)


CODECS: Final[Mapping[str, Codec]] = {
    "odt": PackageCodec(
        "odt", frozenset({".odt", ".ott"}), _Finder("text", "text"), can_double=True
    ),
    "ods": PackageCodec("ods", frozenset({".ods", ".ots"}), _Finder("spreadsheet", "spreadsheet")),
    "odp": PackageCodec(
        "odp", frozenset({".odp", ".otp"}), _Finder("presentation", "presentation")
    ),
}
