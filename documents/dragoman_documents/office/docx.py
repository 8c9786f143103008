"""DOCX: the body, tables, headers, footers, notes, text boxes, alternative texts, the title."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import Codec, Kind, Options
from dragoman_documents.office.bilingual import Doubled
from dragoman_documents.office.charts import add_charts
from dragoman_documents.office.controls import is_value, remark_fields, remark_value
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
    remark_signature,
)
from dragoman_documents.office.package_codec import (
    Found,
    PackageCodec,
    PackagePart,
    attribute_slot,
    headless,
    opened,
)
from dragoman_documents.office.paragraphs.links import FieldNames
from dragoman_documents.office.paragraphs.reading import Dialect, Reader
from dragoman_documents.xml.slots import XmlSlot
from dragoman_documents.xml.tree import XmlElement

WORD: Final = Dialect(
    run="w:r",
    properties="w:rPr",
    text="w:t",
    wrappers=frozenset({
        "w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo",
    }),
    framed={"w:sdt": "w:sdtContent", "w:ruby": "w:rubyBase"},
    stays=is_value,
    dropped=frozenset({"w:proofErr", "w:lastRenderedPageBreak"}),
    ignored=frozenset({"w:lang", "w:noProof"}),
    outside=frozenset({"w:pPr"}),
    fields=FieldNames("w:fldChar", "w:fldCharType", "w:instrText", "w:fldSimple", "w:instr"),
)  # fmt: skip
_LEVELS: Final = {"title": 0, **{f"heading {level}": level for level in range(1, 10)}}
"""Per name of a built-in style its level in the outline."""
_LEFT_ALONE: Final = frozenset({
    "w:del", "w:moveFrom", "m:oMath", "m:oMathPara", "w:fldSimple",
    "w:rPr", "w:pPr", "w:tblPr", "w:trPr", "w:tcPr", "w:sectPr",
})  # fmt: skip
_ATTRIBUTES: Final = {
    "w:hyperlink": ("w:tooltip", "tooltip"),
    "w:tblCaption": ("w:val", "text of a table"),
    "w:tblDescription": ("w:val", "text of a table"),
    "v:textpath": ("string", "WordArt"),
}
_DRAWN: Final = "caption"
"""The kind of text in a locked canvas, which is not doubled."""
_TIPS: Final = "tooltips of several links, which a translation may put in another order, stay"
_PARTS: Final = {
    ".main+xml": "",
    "wordprocessingml.header+xml": "header",
    "wordprocessingml.footer+xml": "footer",
    "wordprocessingml.footnotes+xml": "footnotes",
    "wordprocessingml.endnotes+xml": "endnotes",
}


def _found(archive: Archive, options: Options) -> Found:
    types = content_types(archive, "Word document", "wordprocessingml", "ms-word")
    found = Found()
    styles, bodies = _headings(archive, types), 0
    for kind, label in _PARTS.items():
        for name in of_type(types, kind):
            part = opened(archive, name, PREFIXES)
            bodies += part.root.child("w:body") is not None
            place = f"{label} {number(name)}".removesuffix(" 0") + ", " if label else ""
            walk = _Walk(part, found, options, styles, place)
            found.add(part, list(walk.below(part.root)))
            found.remarks += remark_fields(part)
    if not bodies:
        raise headless("the main part", "body")
    add_charts(found, archive, types, data=True)
    add_diagrams(found, archive, types)
    add_title(found, archive)
    remark_signature(found, archive)
    return found


def _headings(archive: Archive, types: dict[str, str]) -> dict[str, int]:
    """Return the level of each style that is a heading; a title has level 0."""
    levels: dict[str, int] = {}
    for name in of_type(types, "wordprocessingml.styles+xml"):
        for style in opened(archive, name, PREFIXES).root.children:
            called = style.child("w:name")
            title = "" if called is None else called.attributes.get("w:val", "").lower()
            if title in _LEVELS:
                levels[style.attributes.get("w:styleId", "")] = _LEVELS[title]
    return levels


@dataclass(slots=True)
class _Walk:
    """Goes through the paragraphs of a part in their order."""

    part: PackagePart
    found: Found
    options: Options
    styles: Mapping[str, int]
    place: str
    count: int = 0
    cells: int = 0
    headings: list[tuple[int, str]] = field(default_factory=list)
    tooltips: set[int] = field(default_factory=set)
    """Where those of links begin."""
    reader: Reader = field(init=False)
    drawing: Reader = field(init=False)

    def __post_init__(self) -> None:
        """Make the readers of the part's paragraphs, and of those in drawings."""
        self.reader = Reader(self.part.data, WORD)
        self.drawing = Reader(self.part.data, DRAWING)

    def below(self, element: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        """Yield the slots of the segments below an element."""
        for each in element.children:
            for slot in self._attributes(each):
                yield (slot,)
            if each.name in _LEFT_ALONE or self._is_left(each):
                continue
            if each.name in {"w:p", "a:p"}:
                yield from self._paragraph(each) if each.name == "w:p" else self._drawn(each)
            elif each.name == "mc:AlternateContent":
                yield from self._alternatives(each)
            elif each.children:
                self.cells += each.name == "w:tc"
                yield from self.below(each)
                self.cells -= each.name == "w:tc"

    def _here(self) -> str:
        return f"{self.place}paragraph {self.count}"

    def _is_left(self, element: XmlElement) -> bool:
        """Return whether an element is a content control whose value stays, and remark it."""
        if element.name != "w:sdt" or not is_value(element):
            return False
        self.found.remarks += remark_value(self.part, element, self._here())
        return True

    def _drawn(self, element: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        """Yield the slot of a paragraph of DrawingML, as a locked canvas has them."""
        slot = paragraph_slot(self.part, self.drawing, element, Paragraph(self._here(), _DRAWN))
        if slot is not None:
            yield (slot,)

    def _attributes(self, element: XmlElement) -> Iterator[XmlSlot]:
        """Yield the slots of attributes of links, pictures, tables and shapes of old Word."""
        name, place = element.name, self._here()
        if name in {"wp:docPr", "a:cNvPr"}:
            yield from alternative_texts(self.part, element, place)
        elif name == "w:tblPr":
            for each in element.children:
                yield from self._attributes(each)
        elif name in _ATTRIBUTES:
            attribute, what = _ATTRIBUTES[name]
            found = list(attribute_slot(self.part, element, attribute, f"{place}, {what}"))
            self.tooltips.update(each.start for each in found if name == "w:hyperlink")
            yield from found
        elif name.startswith("v:"):
            yield from attribute_slot(self.part, element, "alt", f"{place}, alternative text")

    def _paragraph(self, element: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        self.count += 1
        kind, level = self._kind(element)
        place = self._here()
        shown = tuple(text for _, text in self.headings) if self.options.headings else ()
        slot = paragraph_slot(
            self.part, self.reader, element, Paragraph(place, kind, headings=shown)
        )
        inside = list(self.below(element))
        tips = [slots for slots in inside if slots[0].start in self.tooltips]
        boxes = [slots for slots in inside if slots[0].start not in self.tooltips]
        if len({slots[0].segment.text for slots in tips}) > 1:
            self.found.remark(place, _TIPS, "attribute")
        elif tips:
            yield tuple(slot for slots in tips for slot in slots)
        if slot is not None:
            if level is not None:
                self.headings = [each for each in self.headings if each[0] < level]
                self.headings.append((level, slot.segment.text))
            yield (self._doubled(slot, element, inside, boxed=bool(boxes)),)
        yield from boxes

    def _doubled(
        self,
        slot: XmlSlot,
        element: XmlElement,
        inside: Sequence[tuple[XmlSlot, ...]],
        *,
        boxed: bool,
    ) -> XmlSlot:
        if not self.options.bilingual:
            return slot
        others = [each for slots in inside for each in slots]
        return Doubled.of(slot, self.part.data, element, others, boxed=boxed)

    def _kind(self, element: XmlElement) -> tuple[Kind, int | None]:
        properties = element.child("w:pPr")
        style = None if properties is None else properties.child("w:pStyle")
        level = None if style is None else self.styles.get(style.attributes.get("w:val", ""))
        if level is not None:
            return "heading" if level else "title", level
        if properties is not None and properties.child("w:numPr") is not None:
            return "list_item", None
        return "cell" if self.cells else "paragraph", None

    def _alternatives(self, element: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
        """Yield the slots of alternatives: together if all hold the same paragraphs."""
        held: list[list[tuple[XmlSlot, ...]]] = []
        for each in element.children:
            found = list(self.below(each))
            yield from (slots for slots in found if slots[0].segment.kind == "attribute")
            paragraphs = [slots for slots in found if slots[0].segment.kind != "attribute"]
            held += [paragraphs] if paragraphs else []
        segments = [[slots[0].segment for slots in paragraphs] for paragraphs in held]
        texts = [[(each.text, each.kind == _DRAWN) for each in found] for found in segments]
        if len(held) > 1 and all(each == texts[0] for each in texts):
            for same in zip(*held, strict=True):
                yield tuple(slot for slots in same for slot in slots)
        else:
            for paragraphs in held:
                yield from paragraphs


CODECS: Final[Mapping[str, Codec]] = {
    "docx": PackageCodec(
        "docx", frozenset({".docx", ".docm", ".dotx", ".dotm"}), _found, can_double=True
    )
}
