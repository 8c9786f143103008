"""Translation sources of Qt (`.ts`): messages, and the forms of those with a number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import Codec, Remark, Segment, State
from dragoman_documents.plurals.messages import PluralText, plural_texts
from dragoman_documents.plurals.rules import forms
from dragoman_documents.xml.files import Read, XmlCodec
from dragoman_documents.xml.inline import InlineRules, Mixed, mixed
from dragoman_documents.xml.plurals import FormWriter, slot
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.targets import (
    TargetWriter,
    set_language,
    target_text,
    with_attribute,
)
from dragoman_documents.xml.tree import XmlElement, text_of

_XML: Final = {"": "", "http://www.w3.org/XML/1998/namespace": "xml"}
_RULES: Final = InlineRules()
_COUNT: Final = re.compile(r"%L?n")
_ORDER: Final = {"lv": ("one", "other", "zero")}
"""Languages whose forms Qt has in another order than CLDR (numerus.cpp of Qt's linguist)."""


@dataclass(frozen=True, slots=True)
class _Numerus:
    """The `translation` of a message with a `numerusform` per form of the language."""

    data: bytes
    target: XmlElement
    forms: Sequence[XmlElement]

    @property
    def range(self) -> tuple[int, int]:
        """Return the bytes of the translation."""
        return self.target.start, self.target.end

    @property
    def fixed(self) -> str:
        """Return nothing: all of the markup is in the source too."""
        return ""

    def written(self, contents: Mapping[int, bytes], *, draft: bool) -> bytes:
        """Return the translation; a form that has none stays as it is."""
        tag = self.data[self.target.start : self.target.content]
        complete = all(
            index in contents or form.content < form.stop for index, form in enumerate(self.forms)
        )
        kind = "unfinished" if draft or not complete else None
        parts, end = [_tag(tag, kind)], self.target.content
        for index, form in enumerate(self.forms):
            if index in contents:
                parts += (self.data[end : form.start], _form(contents[index]))
                end = form.end
        return b"".join([*parts, self.data[end : self.target.end]])


def _tag(tag: bytes, kind: str | None) -> bytes:
    """Return the start tag of a translation of one length."""
    return with_attribute(tag, "type", kind, ("variants",))


def _form(content: bytes) -> bytes:
    return b"<numerusform>" + content + b"</numerusform>"


def _read(read: Read) -> None:
    set_language(read, read.root, "language", read.options.target_lang.replace("-", "_"))
    for number, context in enumerate(read.root.children):
        if context.name == "message":
            _add_message(read, context, f"message {number}")
        elif context.name == "context":
            _add_context(read, context)


def _add_context(read: Read, context: XmlElement) -> None:
    name = context.child("name")
    place = text_of(read.data[name.content : name.stop]) if name else ""
    for number, each in enumerate(context.children):
        if each.name == "message":
            _add_message(read, each, f"{place}, message {number}")


def _add_message(read: Read, message: XmlElement, place: str) -> None:
    source = message.child("source")
    if source is None or source.content == source.end:
        return
    target = message.child("translation") or _behind(source)
    kind = target.attributes.get("type")
    found = mixed(read.data, source, _RULES)
    if kind in {"vanished", "obsolete"} or not translatable(found.text):
        return
    notes = (message.child(each) for each in ("comment", "extracomment"))
    texts = (text_of(read.data[each.content : each.stop]).strip() for each in notes if each)
    about = Segment("", place, "message", context="\n".join(texts) or None)
    if message.attributes.get("numerus") == "yes":
        _add_forms(read, target, found, about)
        return
    held = target_text(read.data, _longest(target), found, _RULES)
    segment = about._replace(
        text=found.text, codes=found.codes, state=_state(held, kind), target=held
    )
    tag = read.data[target.start : target.content] or b"<translation>"
    writer = TargetWriter(
        found.writer,
        _tag(tag, None),
        b"</translation>",
        _tag(tag, "unfinished"),
    )
    read.slots.append((XmlSlot(segment, target.start, target.end, writer),))


def _behind(source: XmlElement) -> XmlElement:
    """Return an empty translation behind a source, in a message that has none."""
    return XmlElement("translation", {}, source.end, source.end)


def _longest(target: XmlElement) -> XmlElement:
    """Return the element with a translation; of those of several lengths the first one."""
    is_varied = target.attributes.get("variants") == "yes"
    return (target.child("lengthvariant") if is_varied else None) or target


def _state(held: str | None, kind: str | None) -> State:
    if held is None:
        return "empty"
    return "draft" if kind == "unfinished" else "done"


def _add_forms(read: Read, target: XmlElement, source: Mixed, about: Segment) -> None:
    """Add the forms of a message, if it has as many as the target language."""
    own = _own_forms(read, source)
    elements = [each for each in target.children if each.name == "numerusform"]
    if len(elements) != len(own):
        read.remarks.append(Remark(about.place, (
            f"it has {len(elements)} numerus forms, {read.options.target_lang} has {len(own)}: "
            "it stays as it is; run lupdate -target-language first"
        ), "message"))  # fmt: skip
        return
    message = _Numerus(read.data, target, elements)
    for index, (form, element) in enumerate(zip(own, elements, strict=True)):
        there = target_text(read.data, _longest(element), source, _RULES)
        held = None if there is None else form.numbered(there)
        found = slot(FormWriter(message, index, form, source), about)
        state = _state(held, target.attributes.get("type"))
        segment = found.segment._replace(target=held, state=state)
        read.slots.append((found._replace(segment=segment),))


def _own_forms(read: Read, source: Mixed) -> list[PluralText]:
    """Return the forms in the order of Qt, which has none for decimals."""
    lang = read.options.target_lang
    names = [each.category for each in forms(lang)]
    found = {
        each.category: each for each in plural_texts({"other": source.text}, _COUNT, read.options)
    }
    return [found[name] for name in _ORDER.get(lang.partition("-")[0], names)]


CODECS: Final[Mapping[str, Codec]] = {
    "qt": XmlCodec(
        "qt", frozenset(), frozenset({"TS"}), _read, _XML, has_targets=True, by_language=True
    ),
}
