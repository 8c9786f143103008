"""Content controls and fields of DOCX whose text stays: which ones do, and the remarks on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dragoman_documents.codec import Remark, RemarkKind
from dragoman_documents.office.package_codec import PackagePart
from dragoman_documents.xml.slots import translatable
from dragoman_documents.xml.tree import XmlElement, text_of

_VALUES: Final = frozenset({
    "w:dataBinding", "w15:dataBinding", "w:date", "w:dropDownList", "w:comboBox",
    "w14:checkbox",
})  # fmt: skip
"""Properties of a content control that shows data, a date or one of its own list."""
_KEPT: Final = "values of content controls that show data, dates or a choice stay as they are"
_CONTENTS: Final = frozenset({"TOC", "REF", "STYLEREF"})
_TYPED: Final = frozenset({"FORMTEXT", "MACROBUTTON", "QUOTE", "IF", "FILLIN", "ASK"})
_FIELDS: Final[dict[RemarkKind, str]] = {
    "generated": "tables of contents and references to headings show the source's texts until "
    "they are updated (in Word: Ctrl+A, F9)",
    "expression": "texts in fields such as FORMTEXT, MACROBUTTON, QUOTE and IF stay as they are",
}
_NAMES: Final = re.compile(
    rb"\b(?:%b)\b" % b"|".join(sorted(map(str.encode, _CONTENTS | _TYPED))), re.IGNORECASE
)
_NAME: Final = re.compile(r"\s*(\w+)")
_LITERAL: Final = re.compile(r'"[^"]*"')
_MACRO: Final = re.compile(r"\s*MACROBUTTON\s+\S+", re.IGNORECASE)


def is_value(control: XmlElement) -> bool:
    """Return whether a content control shows data, a date or a choice, which no translation is."""
    properties = control.child("w:sdtPr")
    return properties is not None and any(each.name in _VALUES for each in properties.children)


def remark_value(part: PackagePart, control: XmlElement, place: str) -> Iterator[Remark]:
    """Yield the remark on a content control that is left, if it shows text."""
    texts = (text_of(part.data[each.content : each.stop]) for each in control.descendants("w:t"))
    if any(map(translatable, texts)):
        yield Remark(place, _KEPT, "name")


@dataclass(slots=True)
class _Field:
    """A field: what it does, and the text that it shows."""

    instruction: list[str] = field(default_factory=list[str])
    result: list[str] = field(default_factory=list[str])
    is_parted: bool = False

    def kind(self) -> RemarkKind | None:
        """Return the kind of the remark on the field; None if its text is no matter."""
        instruction, result = "".join(self.instruction), "".join(self.result)
        found = _NAME.match(instruction)
        name = found[1].upper() if found else ""
        if name == "TOC" or (name in _CONTENTS and translatable(result)):
            return "generated"
        return "expression" if name in _TYPED and _says(name, instruction, result) else None


def _says(name: str, instruction: str, result: str) -> bool:
    """Return whether a field has words that somebody typed."""
    if name == "MACROBUTTON":
        return translatable(_MACRO.sub("", instruction))
    literals = "".join(_LITERAL.findall(instruction)) if name != "FORMTEXT" else ""
    return translatable(result) or translatable(literals)


def remark_fields(part: PackagePart) -> Iterator[Remark]:
    """Yield a remark per kind of field whose texts stay in the source language."""
    if _NAMES.search(part.data) is None:
        return
    kinds = [each.kind() for each in _fields(part)]
    for kind, detail in _FIELDS.items():
        if count := kinds.count(kind):
            yield Remark("document", detail, kind, count)


def _fields(part: PackagePart) -> Iterator[_Field]:
    """Yield the fields of a part, each when it ends; text counts for the innermost one."""
    waiting: list[_Field] = []
    for each in part.root.descendants("w:fldChar", "w:instrText", "w:t", "w:fldSimple"):
        kind = each.attributes.get("w:fldCharType")
        if each.name == "w:fldSimple":
            yield _simple(part, each)
        elif kind == "begin":
            waiting.append(_Field())
        elif waiting and kind == "separate":
            waiting[-1].is_parted = True
        elif waiting and kind == "end":
            yield waiting.pop()
        elif waiting:
            shown = waiting[-1].is_parted and each.name == "w:t"
            parts = waiting[-1].result if shown else waiting[-1].instruction
            parts.append(text_of(part.data[each.content : each.stop]))
    yield from waiting


def _simple(part: PackagePart, element: XmlElement) -> _Field:
    texts = [text_of(part.data[each.content : each.stop]) for each in element.descendants("w:t")]
    return _Field([element.attributes.get("w:instr", "")], texts)
