"""RESX and TTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dragoman_documents.codec import Codec, Segment
from dragoman_documents.xml.files import Read, XmlCodec
from dragoman_documents.xml.inline import Rules, mixed
from dragoman_documents.xml.slots import Slot, translatable
from dragoman_documents.xml.targets import set_tag
from dragoman_documents.xml.tree import Element, text_of

_XML: Final = {"": "", "http://www.w3.org/XML/1998/namespace": "xml"}
_TTML: Final = "http://www.w3.org/ns/ttml"
_LANG: Final = "xml:lang"
_TTML_RULES: Final = Rules(frozenset({"span"}))


def _add(read: Read, element: Element, rules: Rules, about: Segment) -> None:
    """Add the content of an element as a segment, if it has text."""
    if element.content == element.end:
        return
    found = mixed(read.data, element, rules)
    if translatable(found.text):
        segment = about._replace(text=found.text, codes=found.codes)
        read.slots.append((Slot(segment, element.content, element.stop, found.writer),))


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
    before = read.root.attributes.get(_LANG)
    set_tag(read, read.root, _LANG)
    for each in read.root.descendants("body", "div"):
        if before and each.attributes.get(_LANG) == before:
            set_tag(read, each, _LANG)
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


CODECS: Final[Mapping[str, Codec]] = {
    "resx": XmlCodec("resx", frozenset({".resx", ".resw"}), frozenset({"root"}), _resx, _XML),
    "ttml": XmlCodec(
        "ttml", frozenset({".ttml", ".dfxp"}), frozenset({"tt"}), _ttml, {**_XML, _TTML: ""}
    ),
}  # fmt: skip
