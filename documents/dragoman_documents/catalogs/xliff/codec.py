"""XLIFF 1.2 and 2.x: sources, and the targets beside them with their states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman_documents.catalogs.xliff.messages import MessageTarget, unit_message
from dragoman_documents.codec import Codec, Remark, Segment, State
from dragoman_documents.office.paragraphs.reading import raw_name
from dragoman_documents.plurals.icu.messages import NO_MESSAGE
from dragoman_documents.xml.files import Constant, Read, XmlCodec
from dragoman_documents.xml.inline import InlineRules, Mixed, mixed
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.targets import (
    TargetWriter,
    attribute_place,
    set_language,
    target_text,
    with_attribute,
)
from dragoman_documents.xml.tree import XmlElement, text_of
from dragoman_text.icu import has_arms

_PREFIXES: Final = {
    "": "",
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    "urn:oasis:names:tc:xliff:document:2.0": "",
    "urn:oasis:names:tc:xliff:document:2.2": "",
    "http://www.w3.org/XML/1998/namespace": "xml",
}
_RULES: Final = InlineRules(frozenset({"g", "mrk", "pc"}))
_BLANKS: Final = re.compile(rb"\s*\Z")
_DONE: Final = frozenset({"translated", "final", "signed-off", "reviewed"})


@dataclass(frozen=True, slots=True)
class _Version:
    """What differs between the versions."""

    unit: str
    language: str
    """Attribute with the language of the targets, and the element that has it."""
    holder: str
    draft: str


_ONE: Final = _Version("trans-unit", "target-language", "file", "needs-review-translation")
_TWO: Final = _Version("segment", "trgLang", "xliff", "initial")


def _read(read: Read) -> None:
    second = read.root.attributes.get("version", "1.2").startswith("2")
    version = _TWO if second else _ONE
    for holder in (read.root, *read.root.children):
        if holder.name == version.holder:
            set_language(read, holder, version.language, read.options.target_lang)
    for unit, context in _units(read, read.root, version, ""):
        _add(read, unit, context, version)


def _units(
    read: Read, element: XmlElement, version: _Version, context: str
) -> Iterator[tuple[XmlElement, str]]:
    """Yield the units that may be translated, with the notes on them."""
    for each in element.children:
        if each.attributes.get("translate") == "no":
            continue
        if each.name == version.unit:
            yield each, _notes(read, each) or context
        elif each.name not in {"header", "alt-trans", "matches", "glossary"}:
            yield from _units(read, each, version, _notes(read, each) or context)


def _notes(read: Read, element: XmlElement) -> str:
    holder = element.child("notes") or element
    notes = [each for each in holder.children if each.name == "note"]
    return "\n".join([text_of(read.data[each.content : each.stop]).strip() for each in notes])


def _add(read: Read, unit: XmlElement, context: str, version: _Version) -> None:
    source = unit.child("source")
    if source is None or source.content == source.end:
        return
    segmented = unit.child("seg-source")
    marked = segmented is not None and segmented.content < segmented.end
    found = mixed(read.data, segmented if segmented and marked else source, _RULES)
    if not translatable(found.text):
        return
    target = unit.child("target")
    held = target_text(read.data, target, found, _RULES)
    about = Segment(
        found.text,
        f"unit {unit.attributes.get('id', len(read.slots) + 1)}",
        "message",
        found.codes,
        _limit(unit),
        _state(unit, target, held, version),
        held,
        context=context or None,
    )
    after = (segmented or source).end
    start, end = _place(read.data, after, target)
    before = read.data[start : target.start] if target else _indent(read.data, source)
    tag = read.data[target.start : target.content] if target else _new(read.data, source)
    states = ("translated", version.draft) if version is _ONE else (None, None)
    done, draft = [
        before + with_attribute(tag, "state", state, ("state-qualifier",)) for state in states
    ]
    closing = b"</" + tag.strip(b"<>/ ").split()[0] + b">"
    state = (_state_slot(read.data, unit, about),) if version is _TWO else ()
    if has_arms(found.text):
        place = _Place((start, end), done, closing, draft)
        _add_message(read, found, target, about, place, state)
        return
    writer = TargetWriter(found.writer, done, closing, draft)
    read.slots.append((XmlSlot(about, start, end, writer), *state))


class _Place(NamedTuple):
    """Where a target is written, and its tags."""

    range: tuple[int, int]
    opening: bytes
    closing: bytes
    draft: bytes


def _add_message(  # noqa: PLR0917
    read: Read,
    found: Mixed,
    target: XmlElement | None,
    about: Segment,
    place: _Place,
    state: tuple[XmlSlot, ...],
) -> None:
    """Add the sentences of an ICU message; the state of their unit goes with the first one."""
    unit = unit_message(found, read.options)
    if unit is None:
        read.remarks.append(Remark(about.place, NO_MESSAGE, "message"))
        return
    segments = unit.segments(about.place)
    held = unit.held(mixed(read.data, target, _RULES) if target else None, read.options)
    whole = MessageTarget(read.data, unit, *place, len(segments))
    for index, (segment, text) in enumerate(zip(segments, held, strict=True)):
        own = segment._replace(
            max_chars=about.max_chars, state=about.state, target=text, context=about.context
        )
        slot = XmlSlot(own, *place.range, whole.writer(index, segment))
        read.slots.append((slot, *(state if index == 0 else ())))


def _limit(unit: XmlElement) -> int | None:
    width = unit.attributes.get("maxwidth", "")
    is_text = unit.attributes.get("size-unit") == "char" and width.isdecimal()
    return int(width) if is_text and len(width) < 7 else None


def _state(
    unit: XmlElement, target: XmlElement | None, held: str | None, version: _Version
) -> State:
    if held is None or target is None:
        return "empty"
    if unit.attributes.get("approved") == "yes":
        return "done"
    holder = target if version is _ONE else unit
    state = holder.attributes.get("state")
    return "done" if state is None or state in _DONE else "draft"


def _place(data: bytes, after: int, target: XmlElement | None) -> tuple[int, int]:
    """Return the range of the target with the blanks before it; where to insert a new one."""
    if target is None:
        return after, after
    blank = after <= target.start and not data[after : target.start].strip()
    return (after if blank else target.start), target.end


def _indent(data: bytes, source: XmlElement) -> bytes:
    """Return the line break and the blanks before the source, for a target after it."""
    first = max(data.rfind(b">", 0, source.start) + 1, source.start - 200)
    match = _BLANKS.search(data, first, source.start)
    return match[0] if match else b""


def _new(data: bytes, source: XmlElement) -> bytes:
    prefix, _, _ = raw_name(data, source).rpartition(b"source")
    return b"<" + prefix + b"target>"


def _state_slot(data: bytes, unit: XmlElement, segment: Segment) -> XmlSlot:
    """Return the place of the state of a segment of XLIFF 2."""
    done, draft = (f' state="{state}"'.encode() for state in ("translated", _TWO.draft))
    return XmlSlot(segment, *attribute_place(data, unit, "state"), Constant(done, draft))


CODECS: Final[Mapping[str, Codec]] = {
    "xliff": XmlCodec(
        "xliff",
        frozenset({".xlf", ".xliff", ".sdlxliff", ".mxliff"}),
        frozenset({"xliff"}),
        _read,
        _PREFIXES,
        has_targets=True,
        by_language=True,
    )
}
