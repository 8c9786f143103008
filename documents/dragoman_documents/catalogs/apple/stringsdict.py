"""Apple's string dictionaries (`.stringsdict`): plural messages in a property list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from dragoman_documents.catalogs.apple.xcstrings import COUNT, KEPT
from dragoman_documents.codec import Codec, Remark, Segment
from dragoman_documents.plurals.messages import PluralText, is_known, plural_texts
from dragoman_documents.plurals.rules import CATEGORIES
from dragoman_documents.values import place_of
from dragoman_documents.xml.files import Read, XmlCodec
from dragoman_documents.xml.html_in_text import Marked
from dragoman_documents.xml.inline import InlineRules, MixedWriter, mixed
from dragoman_documents.xml.plurals import FormWriter, Items, slot
from dragoman_documents.xml.slots import Inner, translatable
from dragoman_documents.xml.tree import XmlElement, text_of

_RULES: Final = InlineRules()
_FORMAT: Final = "NSStringLocalizedFormatKey"
_KIND: Final = "NSStringFormatSpecTypeKey"
_PLURAL: Final = "NSStringPluralRuleType"
_VARIABLE: Final = re.compile(rb"([^%<]*)(%(?:1\$)?#@([^%<@]+)@)([^%<]*)")
_VARIES: Final = "it has more than one plural with text around it: left unchanged"
_OTHER_FORMS: Final = "its plural forms differ from the source language's: left unchanged"


class _Member(NamedTuple):
    """A key of a dictionary, and its value."""

    key: XmlElement
    value: XmlElement


class _Plural(NamedTuple):
    """A message that is one plural, with text around it."""

    format: XmlElement
    before: bytes
    variable: bytes
    """The format's place of the plural."""
    behind: bytes
    forms: Mapping[str, _Member]
    """By category."""

    def sentence(self, form: bytes) -> bytes:
        """Return a form with the text around it."""
        return self.before + form + self.behind


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The forms of a message as whole sentences, from its format to the last form."""

    plural: _Plural
    items: Items

    @property
    def range(self) -> tuple[int, int]:
        """Return the bytes from the text of the format to the last form."""
        return self.plural.format.content, self.items.range[1]

    @property
    def _between(self) -> bytes:
        return self.items.data[self.plural.format.stop : self.items.range[0]]

    @property
    def fixed(self) -> str:
        """Return what is between the texts."""
        return (self.plural.variable + self._between).decode() + self.items.fixed

    def written(self, contents: Mapping[int, bytes], *, draft: bool) -> bytes:
        """Return format and forms: the text around goes into the forms unless all still have it."""
        plural, items = self.plural, self.items
        whole = [
            contents[index] if index in contents else plural.sentence(items.source(form))
            for index, form in enumerate(items.forms)
        ]
        before = plural.before if all(each.startswith(plural.before) for each in whole) else b""
        room = len(before) + len(plural.behind)
        keeps = all(each.endswith(plural.behind) and len(each) >= room for each in whole)
        behind = plural.behind if keeps else b""
        inner = {
            index: each[len(before) : len(each) - len(behind)] for index, each in enumerate(whole)
        }
        forms = items.written(inner, draft=draft)
        return b"".join((before, plural.variable, behind, self._between, forms))


def _stringsdict(read: Read) -> None:
    top = read.root.child("dict")
    for name, (_, value) in _members(read.data, top).items():
        if value.name == "dict":
            _add_message(read, place_of((name,)), _members(read.data, value))


def _members(data: bytes, element: XmlElement | None) -> dict[str, _Member]:
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
    plural = _plural(read.data, message)
    if plural is None:
        read.remarks.append(Remark(place, _VARIES, "message"))
        return
    texts = {name: _mixed(read.data, plural, each) for name, each in plural.forms.items()}
    are_texts = [translatable(each.text) for each in texts.values()]
    if not any(are_texts):
        return
    if not all(are_texts) or not is_known(plural.forms, read.options, kept=KEPT):
        read.remarks.append(Remark(place, _OTHER_FORMS, "message"))
        return
    sources = {name: each.text for name, each in texts.items()}
    forms = plural_texts(sources, COUNT, read.options, kept=KEPT)
    whole = _Sentences(plural, _items(read.data, plural.forms, forms))
    writers = (
        FormWriter(whole, index, each, texts[each.source]) for index, each in enumerate(forms)
    )
    read.slots += [(slot(each, Segment("", place)),) for each in writers]


def _plural(data: bytes, message: Mapping[str, _Member]) -> _Plural | None:
    """Return a message as a plural, if it is one plural and text around it."""
    format_key = message.get(_FORMAT)
    found = _VARIABLE.fullmatch(_raw(data, format_key))
    variables = [name for name, each in message.items() if each.value.name == "dict"]
    if found is None or format_key is None or variables != [text_of(found[3])]:
        return None
    variable = message[variables[0]].value
    held = _members(data, variable)
    forms = {name: each for name, each in held.items() if name in CATEGORIES}
    is_plural = text_of(_raw(data, held.get(_KIND))) == _PLURAL
    in_order = format_key.value.start < variable.start
    if not (is_plural and in_order and _follow_each_other(data, list(forms.values()))):
        return None
    return _Plural(format_key.value, found[1], found[2], found[4], forms)


@dataclass(frozen=True, slots=True)
class _SentenceWriter:
    """Writes a sentence, whose markup is in bytes of its own."""

    raw: bytes
    writer: MixedWriter

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the content of the sentence. Raises ValueError if the tags do not fit."""
        del inner
        return self.writer.written(text, lambda start, end: self.raw[start:end])

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the markup of the sentence."""
        del ranges
        return self.writer.fixed(())


def _mixed(data: bytes, plural: _Plural, form: _Member) -> Marked:
    """Return a form as a sentence."""
    raw = plural.sentence(data[form.value.content : form.value.stop])
    element = XmlElement(form.value.name, {}, 0, 0)
    element.stop = element.end = len(raw)
    found = mixed(raw, element, _RULES)
    return Marked(found.text, found.codes, _SentenceWriter(raw, found.writer))


def _raw(data: bytes, member: _Member | None) -> bytes:
    """Return the text of a value as it is spelled; nothing if there is none."""
    if member is None or member.value.name != "string":
        return b""
    return data[member.value.content : member.value.stop]


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


def _item(member: _Member) -> XmlElement:
    """Return a key with its value as one element."""
    key, value = member
    item = XmlElement(value.name, value.attributes, key.start, value.content)
    item.stop, item.end = value.stop, value.end
    return item


CODECS: Final[Mapping[str, Codec]] = {
    "stringsdict": XmlCodec(
        "stringsdict", frozenset({".stringsdict"}), frozenset({"plist"}), _stringsdict, {"": ""},
        by_language=True,
    ),
}  # fmt: skip
