"""Paragraphs of Office Open XML: runs of equal formatting to a segment with inline codes.

A run is a piece of text with its formatting. Runs that differ only in language, proofing or
revision ids are one. At each level (a paragraph, a hyperlink) the shortest formatting is the base;
every other formatting is a pair of codes. So the base does not depend on the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from dragoman_documents.inline_codes import Closing, Opening, Piece, Single
from dragoman_documents.office.paragraphs.links import (
    NO_FIELD,
    FieldLink,
    FieldNames,
    is_link,
    links,
)
from dragoman_documents.xml.tree import Element, escaped, text_of

_NONE: Final = b""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names of a format's elements, as `xml_text.parsed` spells them."""

    run: str
    properties: str
    text: str
    wrappers: frozenset[str] = frozenset()
    """Elements with runs in them that are a pair of codes: hyperlinks, insertions."""
    dropped: frozenset[str] = frozenset()
    """Elements without meaning, which are lost when their paragraph is written."""
    ignored: frozenset[str] = frozenset()
    """Properties, elements or attributes, that make no difference between runs."""
    outside: frozenset[str] = frozenset()
    """Children of a paragraph that are never a part of a segment."""
    field: FieldNames = NO_FIELD
    read: Callable[[bytes], str] = text_of
    """Decodes the content of a text."""
    write: Callable[[str], str] = escaped
    """Spells a text as such content."""


@dataclass(frozen=True, slots=True)
class Format:
    """The formatting of runs: what it is compared by, and its element as it is written."""

    key: bytes = _NONE
    raw: bytes = _NONE


_PLAIN: Final = Format()


@dataclass(frozen=True, slots=True)
class Text:
    """A run's text, with the range of the run."""

    text: str
    format: Format
    start: int
    end: int
    mixed: bool = False
    """Whether the run holds other things too, so that it is kept as a whole."""
    elements: tuple[Element, ...] = ()
    """What holds the text."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Markup that stays: a range, which may have to be put into a run of its own."""

    start: int
    end: int
    before: bytes = b""
    after: bytes = b""
    run: tuple[int, int] | None = None
    """Range of its run, if this holds text too."""
    in_field: bool = False


@dataclass(frozen=True, slots=True)
class Wrapper:
    """An element with runs in it."""

    element: Element
    items: list[Item]


Item = Text | Fixed | Wrapper


@dataclass(frozen=True, slots=True)
class FormatCode:
    """A pair of codes for a formatting."""

    format: Format


@dataclass(frozen=True, slots=True)
class WrapperCode:
    """A pair of codes for an element, and the base formatting in it."""

    opening: bytes
    closing: bytes
    base: Format


Code = FormatCode | WrapperCode | Fixed


@dataclass(slots=True)
class Fields:
    """How many fields are open; they may go on over paragraphs."""

    open: int = 0


@dataclass(slots=True)
class Reader:
    """Reads the items of paragraphs of one part in the order of the document."""

    data: bytes
    dialect: Dialect
    fields: Fields = field(default_factory=Fields)
    formats: dict[bytes, Format] = field(default_factory=dict)
    """Per element with properties, as it is spelled, what it means."""
    marks: list[int] = field(init=False)
    """Where the name of elements that begin and end fields stands; most elements hold none."""

    def __post_init__(self) -> None:
        """Find the marks of fields."""
        name = re.escape(self.dialect.field.mark.rpartition(":")[2].encode())
        self.marks = [match.start() for match in re.finditer(name, self.data)] if name else []

    def items(self, parent: Element) -> list[Item]:
        """Return the items of a paragraph or of a wrapper."""
        found: list[Item] = []
        linked, behind = self._links(parent), 0
        for index, each in enumerate(parent.children):
            if index in linked:
                behind = linked[index].last + 1
                found.append(self._wrapper(linked[index].element))
            if index < behind or each.name in self.dialect.outside:
                continue
            goes_on = self.fields.open > 0
            if self._in_field(each):
                _add_field(found, each, goes_on=goes_on)
            else:
                found += self._of(each)
        return found

    def _links(self, parent: Element) -> Mapping[int, FieldLink]:
        """Return the links among the children of an element, by the first; a link has none."""
        if self.fields.open or not parent.name or not self._has_mark(parent):
            return {}
        found = links(self.data, parent.children, self.dialect.run, self.dialect.field)
        return {each.first: each for each in found}

    def _wrapper(self, element: Element) -> Item:
        """Return a wrapper; markup that stays if no text is in it."""
        items = self.items(element)
        wraps = any(isinstance(each, Text | Wrapper) for each in items)
        return Wrapper(element, items) if wraps else Fixed(element.start, element.end)

    def _has_mark(self, element: Element) -> bool:
        mark = bisect_left(self.marks, element.start)
        return mark < len(self.marks) and self.marks[mark] < element.end

    def _in_field(self, element: Element) -> bool:
        """Return whether an element is a part of a field, and count the fields in it."""
        before = self.fields.open
        if not self._has_mark(element):
            return before > 0
        seen = False
        for each in element.descendants(self.dialect.field.mark):
            kind = each.attributes.get(self.dialect.field.kind)
            self.fields.open += {"begin": 1, "end": -1}.get(kind or "", 0)
            seen = True
        self.fields.open = max(0, self.fields.open)
        return before > 0 or (seen and element.name == self.dialect.run) or self.fields.open > 0

    def _of(self, element: Element) -> Iterator[Item]:
        if element.name == self.dialect.run:
            yield from self._of_run(element)
        elif element.name == self.dialect.text:
            yield Text(self._text(element), _PLAIN, element.start, element.end, elements=(element,))
        elif element.name in self.dialect.wrappers or is_link(element, self.dialect.field):
            yield self._wrapper(element)
        elif element.name not in self.dialect.dropped:
            yield Fixed(element.start, element.end)

    def _of_run(self, run: Element) -> Iterator[Item]:
        formatting = self._format(run.child(self.dialect.properties))
        skipped = {self.dialect.properties, *self.dialect.dropped}
        children = [each for each in run.children if each.name not in skipped]
        mixed = len({each.name == self.dialect.text for each in children}) > 1
        name = raw_name(self.data, run)
        before, after = b"<" + name + b">" + formatting.raw, b"</" + name + b">"
        for is_text, group in groupby(children, lambda each: each.name == self.dialect.text):
            if is_text:
                elements = tuple(group)
                text = "".join(map(self._text, elements))
                yield Text(text, formatting, run.start, run.end, mixed, elements)
                continue
            for each in group:
                place = (run.start, run.end) if mixed else None
                yield Fixed(each.start, each.end, before, after, place)

    def _text(self, element: Element) -> str:
        return self.dialect.read(self.data[element.content : element.stop])

    def _format(self, properties: Element | None) -> Format:
        if properties is None:
            return _PLAIN
        raw = self.data[properties.start : properties.end]
        if (known := self.formats.get(raw)) is not None:
            return known
        attributes = sorted(
            f"{name}={value!r}"
            for name, value in properties.attributes.items()
            if name not in self.dialect.ignored
        )
        children = (
            self.data[each.start : each.end]
            for each in properties.children
            if each.name not in self.dialect.ignored
        )
        key = b" ".join((" ".join(attributes).encode(), *children)).strip()
        return self.formats.setdefault(raw, Format(key, raw))


def _add_field(found: list[Item], element: Element, *, goes_on: bool) -> None:
    """Add an element to the field at the end of the items, or begin one."""
    start = element.start
    if goes_on and found and isinstance(last := found[-1], Fixed) and last.in_field:
        start = last.start
        del found[-1]
    found.append(Fixed(start, element.end, in_field=True))


def raw_name(data: bytes, element: Element) -> bytes:
    """Return the name of an element as the file spells it, with its prefix."""
    tag = data[element.start + 1 : element.content].rstrip(b"/>")
    return tag.split(None, 1)[0]


def trimmed(items: Sequence[Item]) -> list[Item]:
    """Return the items without those at the ends that hold no text; empty if there is none.

    Runs of blanks go, empty runs stay: the writer puts them where they keep an item from going.
    One wrapper around all is entered.
    """
    start, end = 0, len(items)
    while start < end and _trims(items[start]):
        start += 1
    while end > start and _trims(items[end - 1]):
        end -= 1
    left = list(items[start:end])
    if len(left) == 1 and isinstance(left[0], Wrapper):
        return trimmed(left[0].items)
    return left


def texts(items: Sequence[Item]) -> Iterator[Text]:
    """Yield the texts of all levels in their order."""
    for each in items:
        if isinstance(each, Text):
            yield each
        elif isinstance(each, Wrapper):
            yield from texts(each.items)


def _trims(item: Item) -> bool:
    if isinstance(item, Fixed):
        return item.run is None
    return isinstance(item, Text) and item.text.isspace() and not item.mixed


def extent(items: Sequence[Item]) -> tuple[int, int]:
    """Return the range of bytes that trimmed items occupy."""
    return _range(items[0])[0], _range(items[-1])[1]


def _range(item: Item) -> tuple[int, int]:
    if isinstance(item, Fixed) and item.run is not None:
        return item.run
    whole = item.element if isinstance(item, Wrapper) else item
    return whole.start, whole.end


def base(items: Sequence[Item]) -> Format:
    """Return the base formatting of a level."""
    formats = (each.format for each in items if isinstance(each, Text))
    return min(formats, key=lambda each: (len(each.key), each.key), default=Format())


@dataclass(slots=True)
class Grouping:
    """Makes pieces of items. The markup of a piece is the index of its code."""

    data: bytes
    codes: list[Code] = field(default_factory=list)

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        """Yield the pieces of one level."""
        plain = base(items).key
        group: bytes | None = None
        waiting: list[Piece] = []
        for each in items:
            if isinstance(each, Fixed):
                waiting.append(Single(self._add(each)))
                continue
            key = each.format.key if isinstance(each, Text) else plain
            if group is not None and key != group:
                yield Closing()
                group = None
            yield from waiting
            waiting.clear()
            if isinstance(each, Wrapper):
                yield from self._wrapped(each)
                continue
            if key not in {plain, group}:
                yield self._pair(FormatCode(each.format))
                group = key
            yield each.text
        if group is not None:
            yield Closing()
        yield from waiting

    def _wrapped(self, wrapper: Wrapper) -> Iterator[Piece]:
        element = wrapper.element
        yield self._pair(
            WrapperCode(
                self.data[element.start : element.content],
                self.data[element.stop : element.end],
                base(wrapper.items),
            )
        )
        yield from self.pieces(wrapper.items)
        yield Closing()

    def _pair(self, code: Code) -> Opening:
        return Opening(self._add(code), "")

    def _add(self, code: Code) -> str:
        self.codes.append(code)
        return f"\0{len(self.codes) - 1}"
