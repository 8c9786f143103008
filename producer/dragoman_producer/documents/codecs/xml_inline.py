"""Elements of text and markup mixed, as in ODF and XLIFF, to a segment with inline codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman_producer.documents.codecs.codec import InlineCode
from dragoman_producer.documents.codecs.inline_codes import (
    Closing,
    Opening,
    Piece,
    Single,
    composed,
    pieces,
)
from dragoman_producer.documents.codecs.splicing import skeleton
from dragoman_producer.documents.codecs.xml_slots import Inner, around, shown
from dragoman_producer.documents.codecs.xml_text import Element, escaped, text_of

_NO_TEXT: Final = re.compile(
    rb"(<!\[CDATA\[.*?\]\]>)|<!--.*?-->|<\?.*?\?>"
    rb"|&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z_:][^;&<\s]{0,99};",
    re.DOTALL,
)
"""CDATA, which is text; comments, instructions and entities of the file, which are not."""


def _nothing(_: Element) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Rules:
    """Which elements inside a text are what. All others are single codes."""

    pairs: frozenset[str] = frozenset()
    """Elements whose content belongs to the text."""
    transparent: Callable[[Element], bool] = _nothing
    """Whether the tags of a pair mean nothing; they are lost when the text is written."""
    read: Callable[[bytes], str] = text_of
    """Decodes text between markup."""
    write: Callable[[str], str] = escaped
    """Spells text for its place."""
    write_ends: Callable[[str], str] = escaped
    """Spells the blanks before and after the text."""


@dataclass(frozen=True, slots=True)
class Range:
    """Markup that stays as it is."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of an element around text."""

    opening: bytes
    closing: bytes


@dataclass(frozen=True, slots=True)
class Mixed:
    """The text of an element, and how its translation is written."""

    text: str
    codes: tuple[InlineCode, ...]
    writer: MixedWriter


def mixed(data: bytes, element: Element, rules: Rules) -> Mixed:
    """Return the text and codes of an element's content."""
    text, codes = _only_text(data, element, rules) or _with_codes(data, element, rules)
    start = len(text) - len(text.lstrip())
    writer = MixedWriter(data, codes, rules, text[:start], text[max(start, len(text.rstrip())) :])
    return Mixed(text.strip(), tuple(map(writer.inline_code, codes)), writer)


def _only_text(
    data: bytes, element: Element, rules: Rules
) -> tuple[str, tuple[Range | Tags | str, ...]] | None:
    """Return a text without markup, references or what looks like a tag: most texts are so."""
    raw = data[element.content : element.stop]
    if element.children or b"<" in raw or b"&" in raw:
        return None
    text = rules.read(raw)
    return None if "<" in text else (text, ())


def _with_codes(
    data: bytes, element: Element, rules: Rules
) -> tuple[str, tuple[Range | Tags | str, ...]]:
    reading = _Reading(data, rules)
    text, marks = composed(reading.pieces(element))
    codes = (
        reading.codes[int(each.opening[1:])] if each.opening[:1] == "\0" else each.opening
        for each in marks
    )
    return text, tuple(codes)


@dataclass(slots=True)
class _Reading:
    data: bytes
    rules: Rules
    codes: list[Range | Tags] = field(default_factory=list)

    def pieces(self, element: Element) -> Iterator[Piece]:
        end = element.content
        for each in element.children:
            yield from self._between(end, each.start)
            yield from self._child(each)
            end = each.end
        yield from self._between(end, element.stop)

    def _child(self, element: Element) -> Iterator[Piece]:
        empty = element.content == element.end
        if element.name not in self.rules.pairs or empty:
            yield Single(self._add(Range(element.start, element.end)))
        elif self.rules.transparent(element):
            yield from self.pieces(element)
        else:
            opening = self.data[element.start : element.content]
            yield Opening(self._add(Tags(opening, self.data[element.stop : element.end])), "")
            yield from self.pieces(element)
            yield Closing()

    def _between(self, start: int, end: int) -> Iterator[Piece]:
        """Yield text, with comments, instructions and entities in it as codes."""
        if start == end:
            return
        raw = self.data[start:end]
        last = 0
        for match in _NO_TEXT.finditer(raw) if b"<" in raw or b"&" in raw else ():
            if match[1] is not None:
                continue
            yield self.rules.read(raw[last : match.start()])
            yield Single(self._add(Range(start + match.start(), start + match.end())))
            last = match.end()
        yield self.rules.read(raw[last:])

    def _add(self, code: Range | Tags) -> str:
        self.codes.append(code)
        return f"\0{len(self.codes) - 1}"


@dataclass(frozen=True, slots=True)
class MixedWriter:
    """Writes the content of one element."""

    data: bytes
    codes: tuple[Range | Tags | str, ...]
    """Per code what it stands for; a text that looks like one of our tags is a code too."""
    rules: Rules
    lead: str = ""
    trail: str = ""

    def inline_code(self, code: Range | Tags | str) -> InlineCode:
        """Return a code as people see it."""
        match code:
            case str():
                return InlineCode(code)
            case Tags(opening, closing):
                return InlineCode(shown(opening.decode()), closing.decode())
            case Range(start, end):
                return InlineCode(shown(self.data[start:end].decode()))

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the content of the element."""
        return b"".join(self._parts(text, inner))

    def _parts(self, text: str, inner: Inner) -> Iterator[bytes]:
        opened: list[bytes] = []
        yield self.rules.write_ends(self.lead).encode()
        marks = tuple(
            InlineCode(str(index), "" if isinstance(code, Tags) else None)
            for index, code in enumerate(self.codes)
        )
        for piece in pieces(text, marks):
            match piece:
                case str():
                    yield self._text(piece)
                case Closing():
                    yield opened.pop()
                case Opening(index) | Single(index):
                    yield self._code(self.codes[int(index)], inner, opened)
        yield self.rules.write_ends(self.trail).encode()

    def _code(self, code: Range | Tags | str, inner: Inner, opened: list[bytes]) -> bytes:
        match code:
            case str():
                return self._text(code)
            case Tags(opening, closing):
                opened.append(closing)
                return opening
            case Range(start, end):
                return inner(start, end)

    def _text(self, text: str) -> bytes:
        return self.rules.write(text).encode()

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return a digest of the codes, which does not depend on their order."""
        return skeleton(
            b"",
            [],
            f"{self.lead}\0{self.trail}",
            *sorted(self._digest(each, ranges) for each in self.codes if not isinstance(each, str)),
        )

    def _digest(self, code: Range | Tags, ranges: Sequence[tuple[int, int]]) -> str:
        if isinstance(code, Tags):
            return (code.opening + code.closing).decode()
        return around(self.data, code.start, code.end, ranges)
