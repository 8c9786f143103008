"""Bilingual DOCX: a paragraph with its translation in a paragraph after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.office.paragraphs.reading import raw_name
from dragoman_documents.xml.slots import Inner, Slot, Writer
from dragoman_documents.xml.tree import Element

_NOT_COPIED: Final = frozenset({"w:numPr", "w:sectPr", "w:pPrChange"})


@dataclass(frozen=True, slots=True)
class Doubled:
    """Writes the source as it is, and its translation into a copy of its paragraph.

    The copy has no ids, no number in a list and no section break. A paragraph that ends a section,
    or has text boxes or pictures with texts, gets the translation after a line break.
    """

    writer: Writer
    data: bytes
    before: bytes
    after: bytes
    start: int
    end: int
    """The range of the source that the translation would replace."""

    @classmethod
    def of(cls, slot: Slot, data: bytes, paragraph: Element, *, inside: bool) -> Slot:
        """Return the slot of a bilingual paragraph."""
        properties = paragraph.child("w:pPr")
        section = properties is not None and properties.child("w:sectPr") is not None
        if inside or section:
            return cls._in_line(slot, data, paragraph)
        name = raw_name(data, paragraph)
        before = b"".join((b"<", name, b">", _properties(data, properties)))
        writer = cls(slot.writer, data, before, b"</" + name + b">", slot.start, slot.end)
        segment = slot.segment._replace(doubled=True)
        return slot._replace(segment=segment, writer=writer, start=paragraph.end, end=paragraph.end)

    @classmethod
    def _in_line(cls, slot: Slot, data: bytes, paragraph: Element) -> Slot:
        prefix = raw_name(data, paragraph)[:-1]
        before = b"<" + prefix + b"r><" + prefix + b"br/></" + prefix + b"r>"
        writer = cls(slot.writer, data, before, b"", slot.start, slot.end)
        segment = slot.segment._replace(doubled=False)
        return slot._replace(segment=segment, writer=writer, start=slot.end)

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the paragraph with the translation."""
        del inner
        whole = self.writer.written(text, lambda start, end: self.data[start:end])
        return self.before + whole + self.after

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the digest of the markup in the source."""
        return self.writer.fixed(ranges)


def _properties(data: bytes, properties: Element | None) -> bytes:
    if properties is None:
        return b""
    end = data[properties.content : properties.end]
    parts = [data[properties.start : properties.content]]
    if properties.children:
        parts += (
            data[each.start : each.end]
            for each in properties.children
            if each.name not in _NOT_COPIED
        )
        end = data[properties.stop : properties.end]
    return b"".join((*parts, end))
