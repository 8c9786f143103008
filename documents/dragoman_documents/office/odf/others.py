"""Texts of OpenDocument files that are no paragraphs: of forms, fields, cells and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman_documents.codec import Kind, Remark
from dragoman_documents.office.package_codec import PackagePart, attribute_slot, text_slot
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.tree import XmlElement, text_of

_TITLES: Final[dict[str, tuple[Kind, str]]] = {
    "svg:title": ("attribute", "alternative text"),
    "svg:desc": ("attribute", "alternative text"),
    "table:title": ("attribute", "alternative text"),
    "table:desc": ("attribute", "alternative text"),
    "presentation:header-decl": ("paragraph", "header"),
    "presentation:footer-decl": ("paragraph", "footer"),
    "text:index-title-template": ("heading", "title of an index"),
}
"""Elements with text and nothing else."""
_MESSAGES: Final = frozenset({"table:help-message", "table:error-message"})
_CONDITIONAL: Final = frozenset({"text:conditional-text", "text:hidden-text"})
_CASES: Final = (
    "text:string-value-if-true", "text:string-value-if-false", "text:string-value",
)  # fmt: skip
_CHOICES: Final = frozenset({"form:option", "form:item", "text:label"})
_CHOICE: Final = "what a list of a form or a field offers stays as it is, because it is its value"
_INDEX: Final = "an index shows the source's headings until it is updated (in LibreOffice: Tools)"
_TIP: Final = "titles of links in a text stay as they are"

HOLDERS: Final = frozenset({
    *_TITLES, *_MESSAGES, *_CONDITIONAL, "office:forms", "text:drop-down", "text:index-body",
    "text:a",
})  # fmt: skip
"""Elements for which there are such texts, or remarks."""


def others(part: PackagePart, element: XmlElement, place: str) -> Iterator[tuple[XmlSlot, ...]]:
    """Yield the slots of the segments that an element itself holds, beside those below it."""
    name = element.name
    if name in _TITLES:
        kind, what = _TITLES[name]
        yield from _single(text_slot(part, element, f"{place}, {what}", kind))
    elif name in _MESSAGES:
        yield from _single(attribute_slot(part, element, "table:title", place))
    elif name in _CONDITIONAL:
        yield from _cases(part, element, f"{place}, conditional text")
    elif name == "office:forms":
        yield from _labels(part, element)


def _single(slots: Iterator[XmlSlot]) -> Iterator[tuple[XmlSlot, ...]]:
    return ((slot,) for slot in slots)


def _cases(part: PackagePart, field: XmlElement, place: str) -> Iterator[tuple[XmlSlot, ...]]:
    """Yield the texts that a field may show; the one that it shows is there twice."""
    shown = list(text_slot(part, field, place, "attribute"))
    for name in _CASES:
        for slot in attribute_slot(part, field, name, place):
            same = [each for each in shown if each.segment.text == slot.segment.text]
            shown = [each for each in shown if each not in same]
            yield (slot, *same)


def _labels(part: PackagePart, forms: XmlElement) -> Iterator[tuple[XmlSlot, ...]]:
    """Yield labels and tooltips of the controls of forms."""
    for each in forms.descendants():
        if each.name not in _CHOICES:
            yield from _single(attribute_slot(part, each, "form:label", "form"))
            yield from _single(attribute_slot(part, each, "form:title", "form, tooltip"))


def remarks(part: PackagePart, element: XmlElement, place: str) -> Iterator[Remark]:
    """Yield the remark on the text of an element that stays in the source language."""
    if element.name in {"office:forms", "text:drop-down"}:
        names = ("form:label", "text:value")
        values = (each.attributes.get(name, "") for each in element.descendants(*_CHOICES)
                  for name in names)  # fmt: skip
        if any(map(translatable, values)):
            yield Remark(place, _CHOICE, "name")
    elif element.name == "text:index-body":
        texts = (part.data[each.content : each.stop] for each in element.descendants("text:p"))
        if any(translatable(text_of(raw)) for raw in texts):
            yield Remark(place, _INDEX, "generated")
    elif element.name == "text:a" and translatable(element.attributes.get("office:title", "")):
        yield Remark(place, _TIP, "attribute")
