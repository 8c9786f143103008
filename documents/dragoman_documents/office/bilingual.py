"""Bilingual DOCX and ODT: a paragraph with its translation after it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.office.paragraphs.items import Fixed
from dragoman_documents.office.paragraphs.reading import raw_name
from dragoman_documents.office.paragraphs.writing import Runs
from dragoman_documents.xml.inline import MixedWriter, Range
from dragoman_documents.xml.slots import Inner, XmlSlot, XmlWriter
from dragoman_documents.xml.tree import XmlElement

_NOT_COPIED: Final = frozenset({"w:numPr", "w:sectPr", "w:pPrChange"})


@dataclass(frozen=True, slots=True)
class Doubled:
    """Writes the source as it is, and its translation into a copy of its paragraph.

    The copy has no ids, no number in a list and no section break. A paragraph that ends a section,
    or has text boxes or pictures with texts, gets the translation after a line break. These and the
    tooltips of links are not copied: a document would show them twice.
    """

    writer: XmlWriter
    data: bytes
    before: bytes
    after: bytes
    start: int
    end: int
    """The range of the source that the translation would replace."""
    left_out: tuple[tuple[int, int], ...] = ()
    """Sorted ranges of it that are not copied."""

    @classmethod
    def of(
        cls,
        slot: XmlSlot,
        data: bytes,
        paragraph: XmlElement,
        inside: Sequence[XmlSlot],
        *,
        boxed: bool,
    ) -> XmlSlot:
        """Return the slot of a bilingual paragraph with slots inside; `boxed` ones are no tips."""
        properties = paragraph.child("w:pPr")
        section = properties is not None and properties.child("w:sectPr") is not None
        name = raw_name(data, paragraph)
        left_out, is_boxed = _left_out(slot, inside)
        if boxed or is_boxed or section:
            run, line_break = name[:-1] + b"r", name[:-1] + b"br"
            between = b"".join((b"<", run, b"><", line_break, b"/></", run, b">"))
            return cls.in_line(slot, data, between, inside)
        before = b"".join((b"<", name, b">", _properties(data, properties)))
        writer = cls(slot.writer, data, before, b"</" + name + b">", slot.start, slot.end, left_out)
        segment = slot.segment._replace(doubled=True)
        return slot._replace(segment=segment, writer=writer, start=paragraph.end, end=paragraph.end)

    @classmethod
    def in_line(
        cls, slot: XmlSlot, data: bytes, between: bytes, inside: Sequence[XmlSlot]
    ) -> XmlSlot:
        """Return the slot of a paragraph with its translation in it, after a line break."""
        left_out, _ = _left_out(slot, inside)
        writer = cls(slot.writer, data, between, b"", slot.start, slot.end, left_out)
        segment = slot.segment._replace(doubled=False)
        return slot._replace(segment=segment, writer=writer, start=slot.end)

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the paragraph with the translation."""
        del inner
        return self.before + self.writer.written(text, self._copied) + self.after

    def _copied(self, start: int, end: int) -> bytes:
        """Return a range of the source without what is not copied."""
        parts: list[bytes] = []
        for index in range(bisect_left(self.left_out, (start, start)), len(self.left_out)):
            first, last = self.left_out[index]
            if last > end:
                break
            parts.append(self.data[start:first])
            start = last
        return b"".join((*parts, self.data[start:end]))

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the digest of the markup in the source."""
        return self.writer.fixed(ranges)


def _left_out(slot: XmlSlot, inside: Sequence[XmlSlot]) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Return the markup that holds other segments and the tooltips of links, in their order.

    And whether there is any such markup.
    """
    codes = slot.writer.codes if isinstance(slot.writer, Runs | MixedWriter) else ()
    fixed = sorted((each.start, each.end) for each in codes if isinstance(each, Fixed | Range))
    found: set[tuple[int, int]] = set()
    for each in inside:
        index = bisect_left(fixed, (each.start, each.start)) - 1
        if index >= 0 and each.end <= fixed[index][1]:
            found.add(fixed[index])
        elif slot.start <= each.start < slot.end:
            found.add((each.start, each.end))
    return tuple(sorted(found)), not found.isdisjoint(fixed)


def _properties(data: bytes, properties: XmlElement | None) -> bytes:
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
