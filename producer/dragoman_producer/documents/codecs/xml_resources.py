"""Android strings, RESX, Qt TS and TTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dragoman_producer.documents.codecs.android_text import RULES as ANDROID_RULES
from dragoman_producer.documents.codecs.codec import Codec, Kind, Remark, Segment, State
from dragoman_producer.documents.codecs.xml_files import Read, XmlCodec
from dragoman_producer.documents.codecs.xml_inline import Rules, mixed
from dragoman_producer.documents.codecs.xml_slots import Slot, translatable
from dragoman_producer.documents.codecs.xml_targets import (
    TargetWriter,
    set_language,
    target_text,
    with_attribute,
)
from dragoman_producer.documents.codecs.xml_text import Element, text_of

_XML: Final = {"": "", "http://www.w3.org/XML/1998/namespace": "xml"}
_TTML: Final = "http://www.w3.org/ns/ttml"
_QT_RULES: Final = Rules()
_TTML_RULES: Final = Rules(frozenset({"span"}))
_REFERENCE: Final = re.compile(rb"\s*[@?][A-Za-z+:_./*]*[/:][A-Za-z0-9_.]+\s*\Z")


def _add(read: Read, element: Element, rules: Rules, about: Segment) -> None:
    """Add the content of an element as a segment, if it has text."""
    if element.content == element.end:
        return
    found = mixed(read.data, element, rules)
    if translatable(found.text):
        segment = about._replace(text=found.text, codes=found.codes)
        read.slots.append((Slot(segment, element.content, element.stop, found.writer),))


def _android(read: Read) -> None:
    for each in read.root.children:
        if each.attributes.get("translatable") == "false":
            continue
        name = each.attributes.get("name", "")
        if each.name == "string":
            _add_string(read, each, name, "message")
        elif each.name in {"string-array", "plurals"}:
            for number, item in enumerate(each.children):
                mark = item.attributes.get("quantity", str(number))
                _add_string(read, item, f"{name}.{mark}", "message")
        if each.name == "plurals":
            read.remarks.append(
                Remark(name, "the forms that are there are translated; check those it needs")
            )


def _add_string(read: Read, element: Element, place: str, kind: Kind) -> None:
    raw = read.data[element.content : element.stop]
    if element.content < element.end and not _REFERENCE.match(raw):
        _add(read, _without_blanks(element, raw), ANDROID_RULES, Segment("", place, kind))


def _without_blanks(element: Element, raw: bytes) -> Element:
    """Return an element without the blanks at its ends, which count only in quotes or escaped."""
    start = element.content + len(raw) - len(raw.lstrip())
    inner = Element(element.name, element.attributes, element.start, start)
    kept = raw.rstrip()
    inner.stop = element.stop if kept.endswith(b"\\") else max(start, element.content + len(kept))
    inner.end, inner.children = element.end, element.children
    return inner


def _resx(read: Read) -> None:
    for each in read.root.children:
        name = each.attributes.get("name", "")
        value, comment = each.child("value"), each.child("comment")
        if each.name != "data" or value is None or name.startswith(">>"):
            continue
        if "type" in each.attributes or "mimetype" in each.attributes:
            continue
        note = text_of(read.data[comment.content : comment.stop]).strip() if comment else ""
        _add(read, value, Rules(), Segment("", name, "message", context=note or None))


def _ttml(read: Read) -> None:
    for number, each in enumerate(_outermost(read.root, "p"), 1):
        begin = each.attributes.get("begin")
        place = f"cue at {begin}" if begin else f"cue {number}"
        _add(read, each, _TTML_RULES, Segment("", place, "cue"))


def _outermost(element: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a name, without those inside of one."""
    for each in element.children:
        if each.name == name:
            yield each
        else:
            yield from _outermost(each, name)


def _qt(read: Read) -> None:
    set_language(read, read.root, "language", read.options.target_lang.replace("-", "_"))
    for context in read.root.descendants("context"):
        name = context.child("name")
        place = text_of(read.data[name.content : name.stop]) if name else ""
        for number, each in enumerate(context.children):
            if each.name == "message":
                _add_message(read, each, f"{place}, message {number}")


def _add_message(read: Read, message: Element, place: str) -> None:
    source, target = message.child("source"), message.child("translation")
    if source is None or target is None or source.content == source.end:
        return
    if message.attributes.get("numerus") == "yes":
        read.remarks.append(Remark(place, "it has plural forms and is left alone"))
        return
    kind = target.attributes.get("type")
    found = mixed(read.data, source, _QT_RULES)
    if kind in {"vanished", "obsolete"} or not translatable(found.text):
        return
    held = target_text(read.data, target, found, _QT_RULES)
    state: State = "empty" if held is None else "draft" if kind == "unfinished" else "done"
    notes = (message.child(each) for each in ("comment", "extracomment"))
    texts = (text_of(read.data[each.content : each.stop]).strip() for each in notes if each)
    segment = Segment(
        found.text, place, "message", found.codes, state=state, target=held,
        context="\n".join(texts) or None,
    )  # fmt: skip
    tag = read.data[target.start : target.content]
    writer = TargetWriter(
        found.writer,
        with_attribute(tag, "type", None),
        b"</translation>",
        with_attribute(tag, "type", "unfinished"),
    )
    read.slots.append((Slot(segment, target.start, target.end, writer),))


CODECS: Final[Mapping[str, Codec]] = {
    "android": XmlCodec(
        "android", frozenset({"strings.xml"}), frozenset({"resources"}), _android,
        {**_XML, "urn:oasis:names:tc:xliff:document:1.2": "xliff"}, entities=True,
    ),
    "resx": XmlCodec("resx", frozenset({".resx", ".resw"}), frozenset({"root"}), _resx, _XML),
    "qt": XmlCodec("qt", frozenset(), frozenset({"TS"}), _qt, _XML, has_targets=True),
    "ttml": XmlCodec(
        "ttml", frozenset({".ttml", ".dfxp"}), frozenset({"tt"}), _ttml, {**_XML, _TTML: ""}
    ),
}  # fmt: skip
