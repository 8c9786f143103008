"""TTML: cues are paragraphs; their times never change. The text over a ruby's base stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dragoman_documents.codec import Codec, Segment
from dragoman_documents.xml.files import XML_NAMESPACE, Read, XmlCodec, add_content
from dragoman_documents.xml.inline import InlineRules
from dragoman_documents.xml.targets import set_tag
from dragoman_documents.xml.tree import XmlElement

_NAMESPACES: Final = {
    **XML_NAMESPACE,
    "http://www.w3.org/ns/ttml": "",
    "http://www.w3.org/ns/ttml#styling": "tts",
}
_LANG: Final = "xml:lang"
_BASES: Final = frozenset({"base", "baseContainer"})
_READINGS: Final = frozenset({"text", "textContainer", "delimiter"})


class _Ruby:
    """What spans are in a ruby, by their own attribute or that of a style they name."""

    def __init__(self, root: XmlElement) -> None:
        self._styles = {
            each.attributes.get("xml:id", ""): each.attributes["tts:ruby"]
            for each in root.descendants("style")
            if "tts:ruby" in each.attributes
        }

    def role(self, span: XmlElement) -> str:
        """Return the role of a span; empty if it has none."""
        own = span.attributes.get("tts:ruby")
        styles = span.attributes.get("style", "").split() if own is None else ()
        return own or next((self._styles[each] for each in styles if each in self._styles), "")

    def base(self, span: XmlElement) -> XmlElement | None:
        """Return the one base of a ruby, which alone holds text to translate."""
        if self.role(span) not in {"container", "baseContainer"}:
            return None
        bases = [each for each in span.children if self.role(each) in _BASES]
        return (self.base(bases[0]) or bases[0]) if len(bases) == 1 else None

    def is_reading(self, span: XmlElement) -> bool:
        """Return whether a span is what is written over a base, or between both."""
        return self.role(span) in _READINGS


def _ttml(read: Read) -> None:
    ruby = _Ruby(read.root)
    rules = InlineRules(frozenset({"span"}), core=ruby.base, stays=ruby.is_reading)
    before = read.root.attributes.get(_LANG)
    set_tag(read, read.root, _LANG)
    for each in _containers(read.root):
        if before and each.attributes.get(_LANG) == before:
            set_tag(read, each, _LANG)
    for number, each in enumerate(_outermost(read.root, "p"), 1):
        begin = each.attributes.get("begin")
        place = f"cue at {begin}" if begin else f"cue {number}"
        add_content(read, each, rules, Segment("", place, "cue"))


def _containers(element: XmlElement) -> Iterator[XmlElement]:
    """Yield the elements that hold cues; none is in the text of one."""
    for each in element.children:
        if each.name in {"body", "div"}:
            yield each
            yield from _containers(each)


def _outermost(element: XmlElement, name: str) -> Iterator[XmlElement]:
    """Yield the elements of a name, without those inside of one."""
    for each in element.children:
        if each.name == name:
            yield each
        else:
            yield from _outermost(each, name)


CODECS: Final[Mapping[str, Codec]] = {
    "ttml": XmlCodec("ttml", frozenset({".ttml", ".dfxp"}), frozenset({"tt"}), _ttml, _NAMESPACES),
}
