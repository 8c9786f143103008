"""Apple's string dictionaries (`.stringsdict`): plural messages in a property list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from dragoman_documents.catalogs.apple.xcstrings import COUNT, KEPT
from dragoman_documents.codec import Codec, Remark, Segment
from dragoman_documents.plurals.messages import PluralText, is_known, plural_texts
from dragoman_documents.plurals.rules import CATEGORIES
from dragoman_documents.values import place_of
from dragoman_documents.xml.files import Read, XmlCodec
from dragoman_documents.xml.inline import Rules, mixed
from dragoman_documents.xml.plurals import FormWriter, Items, slot
from dragoman_documents.xml.slots import translatable
from dragoman_documents.xml.tree import Element, text_of

_RULES: Final = Rules()
_FORMAT: Final = "NSStringLocalizedFormatKey"
_KIND: Final = "NSStringFormatSpecTypeKey"
_PLURAL: Final = "NSStringPluralRuleType"
_VARIABLE: Final = re.compile(r"%(?:1\$)?#@(.+)@")
_VARIES: Final = "it has text around its plural, several plurals, or another rule: left alone"
_OTHER_FORMS: Final = "its plural forms are not those of the source language: left alone"


class _Member(NamedTuple):
    """A key of a dictionary, and its value."""

    key: Element
    value: Element


def _stringsdict(read: Read) -> None:
    top = read.root.child("dict")
    for name, (_, value) in _members(read.data, top).items():
        if value.name == "dict":
            _add_message(read, place_of((name,)), _members(read.data, value))


def _members(data: bytes, element: Element | None) -> dict[str, _Member]:
    """Return the members of a dictionary by key; none of what is no dictionary."""
    children = element.children if element is not None and element.name == "dict" else []
    keys, values = children[::2], children[1::2]
    if len(keys) != len(values) or any(each.name != "key" for each in keys):
        return {}
    return {
        text_of(data[key.content : key.stop]): _Member(key, value)
        for key, value in zip(keys, values, strict=True)
    }


def _add_message(read: Read, place: str, message: Mapping[str, _Member]) -> None:
    """Add the forms of a message, or a remark on one that is left alone."""
    found = _forms(read.data, message)
    if found is None:
        read.remarks.append(Remark(place, _VARIES, "message"))
        return
    texts = {name: mixed(read.data, each.value, _RULES) for name, each in found.items()}
    are_texts = [translatable(each.text) for each in texts.values()]
    if not any(are_texts):
        return
    if not all(are_texts) or not is_known(found, read.options, kept=KEPT):
        read.remarks.append(Remark(place, _OTHER_FORMS, "message"))
        return
    sources = {name: each.text for name, each in texts.items()}
    forms = plural_texts(sources, COUNT, read.options, kept=KEPT)
    items = _items(read.data, found, forms)
    writers = (
        FormWriter(items, index, each, texts[each.source]) for index, each in enumerate(forms)
    )
    read.slots += [(slot(each, Segment("", place)),) for each in writers]


def _forms(data: bytes, message: Mapping[str, _Member]) -> dict[str, _Member] | None:
    """Return the forms by category if the message is one plural and nothing else."""
    named = _VARIABLE.fullmatch(_text(data, message.get(_FORMAT)))
    variables = [name for name, each in message.items() if each.value.name == "dict"]
    if named is None or variables != [named[1]]:
        return None
    held = _members(data, message[named[1]].value)
    forms = {name: each for name, each in held.items() if name in CATEGORIES}
    is_plural = _text(data, held.get(_KIND)) == _PLURAL
    return forms if is_plural and _follow_each_other(data, list(forms.values())) else None


def _text(data: bytes, member: _Member | None) -> str:
    """Return the text of a value; nothing if there is none."""
    is_text = member is not None and member.value.name == "string"
    return text_of(data[member.value.content : member.value.stop]) if is_text and member else ""


def _follow_each_other(data: bytes, forms: Sequence[_Member]) -> bool:
    """Return whether forms are texts one behind the other with blanks between, spelled alike."""
    gaps = [data[one.value.end : other.key.start] for one, other in pairwise(forms)]
    gaps += [data[each.key.end : each.value.start] for each in forms]
    tags = {data[each.value.start : each.value.content] for each in forms}
    return tags == {b"<string>"} and not any(map(bytes.strip, gaps))


def _items(data: bytes, found: Mapping[str, _Member], forms: Sequence[PluralText]) -> Items:
    items = {name: _item(each) for name, each in found.items()}
    key, value = list(found.values())[-1]
    before = data[: key.start]
    opening = (data[key.start : key.content], data[key.stop : value.content])
    return Items(data, items, forms, opening, before[len(before.rstrip()) :], b"</string>")


def _item(member: _Member) -> Element:
    """Return a key with its value as one element."""
    key, value = member
    item = Element(value.name, value.attributes, key.start, value.content)
    item.stop, item.end = value.stop, value.end
    return item


CODECS: Final[Mapping[str, Codec]] = {
    "stringsdict": XmlCodec(
        "stringsdict", frozenset({".stringsdict"}), frozenset({"plist"}), _stringsdict, {"": ""},
        by_language=True,
    ),
}  # fmt: skip
