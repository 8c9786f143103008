"""Bilingual Markdown: translations beside their sources."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from dragoman_documents.markup.markdown.extracting import MarkdownSlot, can_follow
from dragoman_documents.markup.markdown.units import MarkdownUnit
from dragoman_documents.splicing import Replacement

_FOOTNOTE: Final = re.compile(rb"\[\^[^\]]*\]:[ \t]*")
_TASK: Final = re.compile(rb"\[[ xX]\][ \t]+")
_MARK: Final = re.compile(rb"[^ \t>]")
_NEWLINE: Final = re.compile(rb"\r\n|\n|\r")
_LINE_END: Final = re.compile(rb"\r\n|\n|\r|\Z")


class Doubling:
    """Translations to be put into one document, whose lines are looked up once."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._newline = b"\r\n" if b"\r\n" in source else b"\n" if b"\n" in source else b"\r"
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(source))]

    def doubled(self, slot: MarkdownSlot, translation: bytes) -> Replacement[bytes]:
        """Return the insertion of a translation: a block after its source, or text beside it."""
        unit = slot.unit
        if unit is not None and unit.wrap[0]:
            before, after = (each.encode() for each in unit.wrap)
            inside = self._source[unit.start + len(before) : unit.tokens[-1].end]
            both = before + inside + _separator(unit) + translation + after
            return Replacement(slot.start, slot.end, both)
        if unit is None or not can_follow(unit):
            return Replacement(slot.end, slot.end, _separator(unit) + translation)
        return self._block(unit, translation)

    def _block(self, unit: MarkdownUnit, translation: bytes) -> Replacement[bytes]:
        place = _line_end(unit.end, self._source)
        if unit.block.underlined:
            place = _line_end(_after_newline(place, self._source), self._source)
        prefix = self._prefix(unit)
        marks = b"#" * unit.block.level + b" " if unit.block.level else b""
        content = (self._newline, prefix.rstrip(), self._newline, prefix, marks, translation)
        return Replacement(place, place, b"".join(content))

    def _prefix(self, unit: MarkdownUnit) -> bytes:
        """Return the quote marks and the indentation of lines after the first one of a block."""
        begin = self._starts[bisect_right(self._starts, unit.start) - 1]
        found = self._source[begin : unit.start]
        if unit.block.level and not unit.block.underlined:
            found = found[: found.rstrip(b" \t").rfind(b"#" * unit.block.level)]
        found = _TASK.sub(b"", _FOOTNOTE.sub(b"    ", found))
        return _MARK.sub(b" ", found)


def _separator(unit: MarkdownUnit | None) -> bytes:
    """Return a line break where HTML may stand; a bar where text alone may: links and titles."""
    inside = unit is None or not unit.outermost
    return b" / " if inside or unit is None or unit.block.level else b"<br/>"


def _line_end(place: int, source: bytes) -> int:
    found = _LINE_END.search(source, place)
    return found.start() if found else len(source)


def _after_newline(place: int, source: bytes) -> int:
    return place + (2 if source.startswith(b"\r\n", place) else 1)
