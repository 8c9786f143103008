"""Places for translations beside their sources, and their language, in XLIFF and Qt TS."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from dragoman_documents.codec import Remark, Segment
from dragoman_documents.inline_codes import plain
from dragoman_documents.office.paragraphs.reading import raw_name
from dragoman_documents.splicing import Replacement, replaced
from dragoman_documents.xml.files import Constant, Read
from dragoman_documents.xml.inline import (
    InlineRules,
    Mixed,
    MixedWriter,
    Range,
    Tags,
    mixed,
)
from dragoman_documents.xml.slots import Inner, XmlSlot, XmlWriter
from dragoman_documents.xml.tree import XmlElement, attribute_range, attributes

_NUMBER: Final = re.compile(r"(</?[gx])([1-9][0-9]{0,5})(/?>)")


class TargetWriter(NamedTuple):
    """Writes a whole element with a translation."""

    source: MixedWriter
    opening: bytes
    """The start tag, and blanks before it."""
    closing: bytes
    draft: bytes
    """The start tag of a translation that a person should look at."""

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the element."""
        return self.opening + self.source.written(text, inner) + self.closing

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return nothing: all of the markup is in the source too."""
        del ranges
        return ""

    def as_draft(self) -> XmlWriter:
        """Return the writer of a draft."""
        return self._replace(opening=self.draft)


def target_text(
    data: bytes, element: XmlElement | None, source: Mixed, rules: InlineRules
) -> str | None:
    """Return the translation that is there, with the numbers of its source's tags; else None."""
    if element is None:
        return None
    found = mixed(data, element, rules)
    if not plain(found.text).strip() and not found.codes:
        return None
    left: dict[bytes | str, deque[int]] = {}
    for number, code in enumerate(source.writer.codes, 1):
        left.setdefault(_markup(source.writer, code), deque()).append(number)
    numbers: dict[str, str] = {}
    for number, code in enumerate(found.writer.codes, 1):
        if same := left.get(_markup(found.writer, code)):
            numbers[str(number)] = str(same.popleft())
    return _NUMBER.sub(
        lambda match: match[1] + numbers.get(match[2], match[2]) + match[3], found.text
    )


def _markup(writer: MixedWriter, code: Range | Tags | str) -> bytes | str:
    match code:
        case Range(start, end):
            return writer.data[start:end]
        case Tags(opening, _):
            return opening
        case str():
            return code


@lru_cache(maxsize=64)
def with_attribute(
    tag: bytes, name: str, value: str | None, dropped: tuple[str, ...] = ()
) -> bytes:
    """Return a start tag with an attribute set, or without it, and without some others."""
    without = {each.encode() for each in (name, *dropped)}
    ranges = [Replacement(start, end, b"") for key, start, end in attributes(tag) if key in without]
    start = replaced(tag, ranges).rstrip(b"/> \t\r\n")
    return start + (b">" if value is None else f' {name}="{value}">'.encode())


def attribute_place(data: bytes, element: XmlElement, name: str) -> tuple[int, int]:
    """Return the range of an attribute with the blank before it; where to insert a new one."""
    value = attribute_range(data, element, name)
    if value is None:
        end = element.start + 1 + len(raw_name(data, element))
        return end, end
    tag = data[element.start : value[0]]
    return element.start + len(tag[: tag.rfind(name.encode())].rstrip()), value[1] + 1


def set_language(read: Read, holder: XmlElement, name: str, language: str) -> None:
    """Set the language of the targets in an attribute; remark another one that is there."""
    there = holder.attributes.get(name)
    if there and not _same(there, language):
        read.remarks.append(
            Remark(
                "file",
                f"its targets are in {there}; it is translated to {language} all the same",
                "language",
            )
        )
    place = attribute_place(read.data, holder, name)
    content = read.data[slice(*place)] if there else f' {name}="{language}"'.encode()
    read.once.append(XmlSlot(Segment("", "file"), *place, Constant(content)))


def set_tag(read: Read, holder: XmlElement, name: str) -> None:
    """Set the language of a file without a place for targets; that of a region of it stays."""
    there, language = holder.attributes.get(name), read.options.target_lang
    place = attribute_place(read.data, holder, name)
    kept = there and _same(there, language)
    content = read.data[slice(*place)] if kept else f' {name}="{language}"'.encode()
    read.once.append(XmlSlot(Segment("", "file"), *place, Constant(content)))


def _same(there: str, language: str) -> bool:
    """Return whether a language is the one wanted, or that of a region: `de-AT` for `de`."""
    held, wanted = (each.lower().replace("_", "-") + "-" for each in (there, language))
    return held.startswith(wanted)
