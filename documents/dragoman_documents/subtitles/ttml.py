"""TTML: cues are paragraphs; their times never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dragoman_documents.codec import Codec, Segment
from dragoman_documents.xml.files import XML_NAMESPACE, Read, XmlCodec, add_content
from dragoman_documents.xml.inline import Rules
from dragoman_documents.xml.targets import set_tag
from dragoman_documents.xml.tree import Element

_NAMESPACES: Final = {**XML_NAMESPACE, "http://www.w3.org/ns/ttml": ""}
_LANG: Final = "xml:lang"
_RULES: Final = Rules(frozenset({"span"}))


def _ttml(read: Read) -> None:
    before = read.root.attributes.get(_LANG)
    set_tag(read, read.root, _LANG)
    for each in read.root.descendants("body", "div"):
        if before and each.attributes.get(_LANG) == before:
            set_tag(read, each, _LANG)
    for number, each in enumerate(_outermost(read.root, "p"), 1):
        begin = each.attributes.get("begin")
        place = f"cue at {begin}" if begin else f"cue {number}"
        add_content(read, each, _RULES, Segment("", place, "cue"))


def _outermost(element: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a name, without those inside of one."""
    for each in element.children:
        if each.name == name:
            yield each
        else:
            yield from _outermost(each, name)


CODECS: Final[Mapping[str, Codec]] = {
    "ttml": XmlCodec("ttml", frozenset({".ttml", ".dfxp"}), frozenset({"tt"}), _ttml, _NAMESPACES),
}
