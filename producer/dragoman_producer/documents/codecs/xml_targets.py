"""Places for translations beside their sources, in XLIFF and Qt TS."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dragoman_producer.documents.codecs.inline_codes import plain
from dragoman_producer.documents.codecs.splicing import Replacement, replaced
from dragoman_producer.documents.codecs.xml_inline import (
    Mixed,
    MixedWriter,
    Range,
    Rules,
    Tags,
    mixed,
)
from dragoman_producer.documents.codecs.xml_slots import Inner, Writer
from dragoman_producer.documents.codecs.xml_text import Element, attributes

_NUMBER: Final = re.compile(r"(</?[gx])([1-9][0-9]{0,5})(/?>)")


@dataclass(frozen=True, slots=True)
class TargetWriter:
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

    def as_draft(self) -> Writer:
        """Return the writer of a draft."""
        return replace(self, opening=self.draft)


def target_text(data: bytes, element: Element | None, source: Mixed, rules: Rules) -> str | None:
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


def with_attribute(tag: bytes, name: str, value: str | None, dropped: Sequence[str] = ()) -> bytes:
    """Return a start tag with an attribute set, or without it, and without some others."""
    without = {each.encode() for each in (name, *dropped)}
    ranges = [Replacement(start, end, b"") for key, start, end in attributes(tag) if key in without]
    start = replaced(tag, ranges).rstrip(b"/> \t\r\n")
    return start + (b">" if value is None else f' {name}="{value}">'.encode())
