"""Bilingual Markdown: translations beside their sources."""

from __future__ import annotations

import re
from typing import Final

from dragoman_producer.documents.codecs.markdown_extracting import Slot, can_follow
from dragoman_producer.documents.codecs.markdown_units import Unit
from dragoman_producer.documents.codecs.splicing import Replacement

_FOOTNOTE: Final = re.compile(rb"\[\^[^\]]*\]:[ \t]*")
_TASK: Final = re.compile(rb"\[[ xX]\][ \t]+")
_MARK: Final = re.compile(rb"[^ \t>]")
_LINE_END: Final = re.compile(rb"\r\n|\n|\r|\Z")


def doubled(slot: Slot, translation: bytes, source: bytes) -> Replacement[bytes]:
    """Return the insertion of a translation: a block after its source, or text beside it."""
    unit = slot.unit
    if unit is not None and unit.wrap[0]:
        before, after = (each.encode() for each in unit.wrap)
        inside = source[unit.start + len(before) : unit.tokens[-1].end]
        both = before + inside + _separator(unit) + translation + after
        return Replacement(slot.start, slot.end, both)
    if unit is None or not can_follow(unit):
        return Replacement(slot.end, slot.end, _separator(unit) + translation)
    return _block(unit, translation, source)


def _separator(unit: Unit | None) -> bytes:
    """Return a line break where HTML may stand; a bar where text alone may: links and titles."""
    inside = unit is None or not unit.outermost
    return b" / " if inside or unit is None or unit.block.level else b"<br/>"


def _block(unit: Unit, translation: bytes, source: bytes) -> Replacement[bytes]:
    place = _line_end(unit.end, source)
    if unit.block.underlined:
        place = _line_end(_after_newline(place, source), source)
    prefix = _prefix(unit, source)
    newline = b"\r\n" if b"\r\n" in source else b"\n" if b"\n" in source else b"\r"
    marks = b"#" * unit.block.level + b" " if unit.block.level else b""
    return Replacement(
        place, place, newline + prefix.rstrip() + newline + prefix + marks + translation
    )


def _prefix(unit: Unit, source: bytes) -> bytes:
    """Return the quote marks and the indentation of lines after the first one of a block."""
    begin = max(source.rfind(b"\n", 0, unit.start), source.rfind(b"\r", 0, unit.start)) + 1
    found = source[begin : unit.start]
    if unit.block.level and not unit.block.underlined:
        found = found[: found.rstrip(b" \t").rfind(b"#" * unit.block.level)]
    found = _TASK.sub(b"", _FOOTNOTE.sub(b"    ", found))
    return _MARK.sub(b" ", found)


def _line_end(place: int, source: bytes) -> int:
    found = _LINE_END.search(source, place)
    return found.start() if found else len(source)


def _after_newline(place: int, source: bytes) -> int:
    return place + (2 if source.startswith(b"\r\n", place) else 1)
