"""Paragraphs of Office Open XML: runs of equal formatting to a segment with inline codes.

A run is a piece of text with its formatting. Runs that differ only in language, proofing or
revision ids are one. At each level (a paragraph, a hyperlink) the shortest formatting is the base;
every other formatting is a pair of codes. So the base does not depend on the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from dragoman_documents.office.paragraphs.items import Fixed, Format, Item, RunText, Wrapper
from dragoman_documents.office.paragraphs.links import (
    NO_FIELD,
    FieldLink,
    FieldNames,
    is_link,
    links,
)
from dragoman_documents.xml.tree import XmlElement, escaped, framed, text_of

_PLAIN: Final = Format()


def _nothing(_: XmlElement) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names of a format's elements, as `xml_text.parsed` spells them."""

    run: str
    properties: str
    text: str
    wrappers: frozenset[str] = frozenset()
    """Elements with runs in them that are a pair of codes: hyperlinks, insertions."""
    framed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Elements that are such a pair around the content of a child, also within a run: a ruby."""
    stays: Callable[[XmlElement], bool] = _nothing
    """Whether a framed element is left as it is."""
    dropped: frozenset[str] = frozenset()
    """Elements without meaning, which are lost when their paragraph is written."""
    ignored: frozenset[str] = frozenset()
    """Properties, elements or attributes, that make no difference between runs."""
    outside: frozenset[str] = frozenset()
    """Children of a paragraph that are never a part of a segment."""
    fields: FieldNames = NO_FIELD
    read: Callable[[bytes], str] = text_of
    """Decodes the content of a text."""
    write: Callable[[str], str] = escaped
    """Spells a text as such content."""


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
        name = re.escape(self.dialect.fields.mark.rpartition(":")[2].encode())
        self.marks = [match.start() for match in re.finditer(name, self.data)] if name else []

    def items(self, parent: XmlElement) -> list[Item]:
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

    def _links(self, parent: XmlElement) -> Mapping[int, FieldLink]:
        """Return the links among the children of an element, by the first; a link has none."""
        if self.fields.open or not parent.name or not self._has_mark(parent):
            return {}
        found = links(self.data, parent.children, self.dialect.run, self.dialect.fields)
        return {each.first: each for each in found}

    def _wrapper(self, element: XmlElement) -> Item:
        """Return a wrapper; markup that stays if no text is in it."""
        items = self.items(element)
        wraps = any(isinstance(each, RunText | Wrapper) for each in items)
        return Wrapper(element, items) if wraps else Fixed(element.start, element.end)

    def _framed(self, element: XmlElement) -> XmlElement | None:
        """Return a framed element with the content of its child; None if it is left."""
        name = self.dialect.framed.get(element.name)
        inner = None if name is None else element.child(name)
        if inner is None or self.dialect.stays(element):
            return None
        return framed(element, inner)

    def _has_mark(self, element: XmlElement) -> bool:
        mark = bisect_left(self.marks, element.start)
        return mark < len(self.marks) and self.marks[mark] < element.end

    def _in_field(self, element: XmlElement) -> bool:
        """Return whether an element is a part of a field, and count the fields in it."""
        before = self.fields.open
        if not self._has_mark(element):
            return before > 0
        seen = False
        for each in element.descendants(self.dialect.fields.mark):
            kind = each.attributes.get(self.dialect.fields.kind)
            self.fields.open += {"begin": 1, "end": -1}.get(kind or "", 0)
            seen = True
        self.fields.open = max(0, self.fields.open)
        return before > 0 or (seen and element.name == self.dialect.run) or self.fields.open > 0

    def _of(self, element: XmlElement) -> Iterator[Item]:
        if element.name == self.dialect.run:
            yield from self._of_run(element)
        elif element.name == self.dialect.text:
            yield RunText(
                self._text(element), _PLAIN, element.start, element.end, elements=(element,)
            )
        elif element.name in self.dialect.wrappers or is_link(element, self.dialect.fields):
            yield self._wrapper(element)
        elif (whole := self._framed(element)) is not None:
            yield self._wrapper(whole)
        elif element.name not in self.dialect.dropped:
            yield Fixed(element.start, element.end)

    def _of_run(self, run: XmlElement) -> Iterator[Item]:
        formatting = self._format(run.child(self.dialect.properties))
        skipped = {self.dialect.properties, *self.dialect.dropped}
        children = [each for each in run.children if each.name not in skipped]
        mixed = len({each.name == self.dialect.text for each in children}) > 1
        is_whole = mixed or any(each.name in self.dialect.framed for each in children)
        name = raw_name(self.data, run)
        before, after = b"<" + name + b">" + formatting.raw, b"</" + name + b">"
        place = (run.start, run.end) if is_whole else None
        for is_text, group in groupby(children, lambda each: each.name == self.dialect.text):
            if is_text:
                elements = tuple(group)
                text = "".join(map(self._text, elements))
                yield RunText(text, formatting, run.start, run.end, mixed, elements)
                continue
            for each in group:
                yield self._in_run(each, Fixed(each.start, each.end, before, after, place))

    def _in_run(self, element: XmlElement, fixed: Fixed) -> Item:
        """Return what a part of a run is if it is no text: markup that stays, or a wrapper."""
        whole = self._framed(element)
        item = fixed if whole is None else self._wrapper(whole)
        if not isinstance(item, Wrapper):
            return fixed
        return Wrapper(item.element, item.items, fixed.before, fixed.after, fixed.run)

    def _text(self, element: XmlElement) -> str:
        return self.dialect.read(self.data[element.content : element.stop])

    def _format(self, properties: XmlElement | None) -> Format:
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


def _add_field(found: list[Item], element: XmlElement, *, goes_on: bool) -> None:
    """Add an element to the field at the end of the items, or begin one."""
    start = element.start
    if goes_on and found and isinstance(last := found[-1], Fixed) and last.in_field:
        start = last.start
        del found[-1]
    found.append(Fixed(start, element.end, in_field=True))


def raw_name(data: bytes, element: XmlElement) -> bytes:
    """Return the name of an element as the file spells it, with its prefix."""
    tag = data[element.start + 1 : element.content].rstrip(b"/>")
    return tag.split(None, 1)[0]
