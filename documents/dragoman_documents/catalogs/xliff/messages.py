"""ICU messages in XLIFF, as Angular extracts them: a segment per sentence, and one target.

`{VAR_PLURAL, plural, =1 {one minute} other {<x id="INTERPOLATION"/> minutes}}` may have an inline
element in several sentences, and its target may have it more often than its source.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman_documents.codec import InlineCode, Options, Segment
from dragoman_documents.plurals.icu.messages import IcuMessage, parsed
from dragoman_documents.plurals.messages import PluralText
from dragoman_documents.xml.html_in_text import Marked
from dragoman_documents.xml.inline import Mixed, Range, Tags
from dragoman_documents.xml.plurals import FormWriter
from dragoman_documents.xml.slots import Inner, shown
from dragoman_documents.xml.tree import escaped
from dragoman_text.icu import has_arms

_TAG: Final = re.compile(r"<(/?)([gx])([1-9][0-9]{0,5})(/?)>")


class _Markup(NamedTuple):
    """An inline element: its tags, or all of it."""

    opening: bytes
    closing: bytes | None = None


@dataclass(frozen=True, slots=True)
class UnitMessage:
    """The message of a unit."""

    message: IcuMessage
    markup: tuple[_Markup, ...]
    """By the number of its tags in the message; equal elements have one number."""

    def segments(self, place: str) -> tuple[Segment, ...]:
        """Return a segment per sentence with words, with what its tags are in the file."""
        return tuple(
            each._replace(codes=tuple(map(self._shown, each.codes)))
            for each in self.message.segments(place)
        )

    def held(self, target: Mixed | None, options: Options) -> Sequence[str | None]:
        """Return the sentences that a target has, with the tags of the source's."""
        own = self.message.segments("")
        known = {each: number for number, each in enumerate(self.markup, 1)}
        text = None if target is None else _numbered(target, known, grows=False)
        found = None if text is None else parsed(text, options)
        if found is None or found.signature != self.message.signature:
            return [None] * len(own)
        return list(map(_with_tags_of, found.segments(""), own))

    def content(self, texts: Sequence[str]) -> bytes:
        """Return the message with translations. Raises ValueError if elements would cross."""
        return b"".join(self._parts(self.message.spelled(texts)))

    def _shown(self, code: InlineCode) -> InlineCode:
        tag = _TAG.fullmatch(code.opening)
        if tag is None:
            return code
        markup = self.markup[int(tag[3]) - 1]
        raw = markup.closing if tag[1] and markup.closing is not None else markup.opening
        return InlineCode(shown(raw.decode()))

    def _parts(self, text: str) -> Iterator[bytes]:
        opened: list[str] = []
        end = 0
        for match in _TAG.finditer(text):
            yield escaped(text[end : match.start()]).encode()
            opening, closing = self.markup[int(match[3]) - 1]
            if match[1] and (not opened or opened.pop() != match[3]):
                raise ValueError("elements of a message would cross")
            if match[2] == "g" and not match[1]:
                opened.append(match[3])
            yield closing or b"" if match[1] else opening
            end = match.end()
        if opened:
            raise ValueError("an element of a message is not closed")
        yield escaped(text[end:]).encode()


def unit_message(source: Mixed, options: Options) -> UnitMessage | None:
    """Return the message that a source is; None if it is none that can be translated."""
    if not has_arms(source.text):
        return None
    markup: dict[_Markup, int] = {}
    text = _numbered(source, markup, grows=True)
    message = None if text is None else parsed(text, options)
    return None if message is None else UnitMessage(message, tuple(markup))


def _numbered(found: Mixed, known: dict[_Markup, int], *, grows: bool) -> str | None:
    """Return a text whose tags have the known numbers of their elements.

    None if one is not known, unless what is known `grows`.
    """
    numbers: dict[str, str] = {}
    for number, code in enumerate(found.writer.codes, 1):
        own = _markup(found, code)
        if own not in known and not grows:
            return None
        numbers[str(number)] = str(known.setdefault(own, len(known) + 1))
    return _TAG.sub(
        lambda each: f"<{each[1]}{each[2]}{numbers.get(each[3], each[3])}{each[4]}>", found.text
    )


def _markup(found: Mixed, code: Range | Tags | str) -> _Markup:
    match code:
        case Range(start, end):
            return _Markup(found.writer.data[start:end])
        case Tags(opening, closing):
            return _Markup(opening, closing)
        case str():
            return _Markup(escaped(code).encode())


def _with_tags_of(target: Segment, source: Segment) -> str | None:
    """Return a sentence of a target with the numbers of its source's tags; None if they differ."""
    left: dict[str, deque[int]] = {}
    for number, code in enumerate(source.codes, 1):
        left.setdefault(code.opening, deque()).append(number)
    if sorted(each.opening for each in target.codes) != sorted(
        each.opening for each in source.codes
    ):
        return None
    numbers = [left[each.opening].popleft() for each in target.codes]
    return _TAG.sub(lambda each: f"<x{numbers[int(each[3]) - 1]}/>", target.text)


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """The target of a unit with a message, written whole or not at all."""

    data: bytes
    unit: UnitMessage
    range: tuple[int, int]
    opening: bytes
    closing: bytes
    draft: bytes
    count: int
    """Of the sentences."""
    fixed: str = ""

    def written(self, contents: Mapping[int, bytes], *, draft: bool) -> bytes:
        """Return the target; what is there as long as a sentence has no translation."""
        if len(contents) < self.count:
            return self.data[slice(*self.range)]
        texts = [contents[index].decode() for index in range(self.count)]
        return (self.draft if draft else self.opening) + self.unit.content(texts) + self.closing

    def writer(self, index: int, segment: Segment) -> FormWriter:
        """Return what writes a sentence."""
        form = PluralText("", "", segment.text)
        return FormWriter(self, index, form, Marked(segment.text, segment.codes, _AsText()))


class _AsText:
    """Gives the translation of a sentence to its message."""

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the translation."""
        del inner
        return text.encode()

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return nothing: all of the markup is in the source too."""
        del ranges
        return ""
