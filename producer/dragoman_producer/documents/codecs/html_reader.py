"""Documents of HTML read once: segments, places, and what the start tag of `html` says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from dragoman_producer.documents.codecs.codec import Kind, Segment
from dragoman_producer.documents.codecs.html_blocks import Around, Item, Place, Run, block_segment
from dragoman_producer.documents.codecs.html_elements import (
    BLOCKS,
    NEVER_TEXT,
    NO_TEXT,
    VOID,
    Element,
    OpenElements,
    names,
)
from dragoman_producer.documents.codecs.html_text import (
    decoded_attribute,
    escaped,
    is_text,
    unknown_references,
)
from dragoman_producer.documents.codecs.html_tokens import Attribute, Token, attributes, tokens
from dragoman_producer.documents.codecs.inline_codes import composed, plain

TRANSLATED: Final = frozenset({"alt", "title", "placeholder", "aria-label"})
"""Attributes whose values are translated."""
_LABELLED: Final = frozenset({"option", "optgroup", "track"})  # their `label` is shown
_NO_TITLE: Final = frozenset({"link", "style"})  # names a set of style sheets
_META: Final = names(
    "description og:title og:description og:site_name og:image:alt"
    " twitter:title twitter:description twitter:image:alt"
)
_INTERESTING: Final = re.compile(r"alt|title|placeholder|label|translate|content", re.IGNORECASE)
_ROOTS: Final = frozenset({"html", "ncx"})
_MOST_NESTED: Final = 8
"""Inline codes within each other that have texts: each holds the markup of all within it."""
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass(slots=True)
class Page:
    """What a document consists of."""

    text: str
    xml: bool
    segments: list[Segment] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    html: Token | None = None
    """The start tag of the root, if it is the first element: `html`, and `ncx` of EPUB 2."""


def read_page(text: str, *, xml: bool, headings: bool = False) -> Page:
    """Return the segments of a document, those within inline codes before the ones around them."""
    reader = _Reader(Page(text, xml), headings=headings)
    for token in tokens(text, xml=xml):
        reader.add(token)
    return reader.done()


class _Reader:
    """A document as it is read."""

    def __init__(self, page: Page, *, headings: bool) -> None:
        self._page = page
        self._text = page.text
        self._xml = page.xml
        self._open = OpenElements()
        self._run = Run(0)
        self._runs = 0
        self._suspended: list[Run] = []
        self._headings: list[tuple[str, str]] | None = [] if headings else None
        self._line, self._counted = 1, 0

    def add(self, token: Token) -> None:
        if token.kind == "start":
            self._start(token)
        elif token.kind == "end":
            self._end(token)
        elif self._translated:
            self._content(token)

    def _content(self, token: Token) -> None:
        kind: Literal["text", "single"] = "text" if token.kind == "text" else "single"
        items = self._run.items
        if items or kind != "text" or not self._text[token.start : token.end].isspace():
            items.append(Item(kind, token.start, token.end))

    def done(self) -> Page:
        end = len(self._text)
        self._close(self._open.all(), end)
        self._flush(None, end)
        return self._page

    @property
    def _translated(self) -> bool:
        last = self._open.last
        return last is None or last.translated

    def _start(self, token: Token) -> None:
        self._close(self._open.ended_by_start(token.name, xml=self._xml), token.start)
        if self._open.last is None and self._page.html is None and token.name in _ROOTS:
            self._page.html = token
        block = token.name in BLOCKS
        if block:
            self._flush(self._open.block, None)
        element = self._element(token, block=block)
        if self._is_empty(token):
            if self._translated and not block:
                self._run.items.append(Item("single", token.start, token.end))
            return
        if self._translated and not block:
            if element.translated:
                element.item = (self._run.number, len(self._run.items))
                self._run.items.append(Item("open", token.start, token.end))
            else:
                element.opaque = True
                self._suspended.append(self._run)
                self._run = self._new_run()
        self._open.push(element)

    def _element(self, token: Token, *, block: bool) -> Element:
        """Return the element that a start tag opens, with its attributes read."""
        around = self._open.last
        outer = around.translated if around is not None else True
        found: list[Attribute] = []
        plain_tag = token.end - token.start == len(token.name) + 2
        if not plain_tag and _INTERESTING.search(self._text, token.start, token.end):
            found = list(attributes(self._text, token))
        translated = self._wanted(token, found, outer=outer)
        if (translated or (outer and token.name == "textarea")) and token.name not in _NO_TITLE:
            self._attributes(token, found)
        preserved = token.name == "pre" or (around is not None and around.preserved)
        bounded = block or (translated and not outer)  # the text before it is not translated
        return Element(token.name, token.start, token.end, translated, preserved, bounded)

    def _wanted(self, token: Token, found: list[Attribute], *, outer: bool) -> bool:
        """Return whether the content of an element is translated."""
        if token.name in NEVER_TEXT:
            return False
        if not found:
            return outer and token.name not in NO_TEXT
        values = {
            each.name: self._value(each) for each in found if each.name in {"translate", "class"}
        }
        match values.get("translate"):
            case "no":
                return False
            case "yes" | "":
                return outer or len(self._suspended) < _MOST_NESTED
            case _:
                skipped = "notranslate" in values.get("class", "").split()
                return outer and token.name not in NO_TEXT and not skipped

    def _value(self, attribute: Attribute) -> str:
        if attribute.value_start < 0:
            return ""
        raw = self._text[attribute.value_start : attribute.end]
        raw = raw[1:].removesuffix(raw[0]) if raw[0] in "\"'" else raw
        return decoded_attribute(raw, xml=self._xml)

    def _attributes(self, token: Token, found: list[Attribute]) -> None:
        for each in found:
            if each.value_start >= 0 and self._is_translated(token, each.name, found):
                start, end = each.value_start, each.end
                value = self._value(each)
                unknown = self._xml and any(unknown_references(self._text, start, end))
                if is_text(value) and not unknown:
                    kind: Kind = "metadata" if token.name == "meta" else "attribute"
                    text, codes = composed([value], partial(escaped, xml=self._xml))
                    self._add(Segment(text, "", kind, codes, doubled=False), Place(start, end))

    def _is_translated(self, token: Token, name: str, found: list[Attribute]) -> bool:
        if token.name == "meta":
            found_names = (self._value(each) for each in found if each.name in {"name", "property"})
            return name == "content" and any(each.lower() in _META for each in found_names)
        return name in TRANSLATED or (name == "label" and token.name in _LABELLED)

    def _is_empty(self, token: Token) -> bool:
        return token.closed or (token.name in VOID and not self._xml)

    def _end(self, token: Token) -> None:
        ended = self._open.ended_by_end(token.name)
        if ended:
            self._close(ended[:-1], token.start)
            self._close_by(ended[-1], token)
        elif token.name in BLOCKS:
            self._flush(self._open.block, None)
        elif self._translated:
            self._run.items.append(Item("single", token.start, token.end))

    def _close(self, elements: list[Element], end: int) -> None:
        for element in elements:
            self._close_one(element, end)

    def _close_by(self, element: Element, token: Token) -> None:
        """Close an element by its own end tag."""
        number, index = element.item
        if number == self._run.number and not element.block and not element.opaque:
            self._run.items[index].mate = len(self._run.items)
            self._run.items.append(Item("close", token.start, token.end, index))
        else:
            self._close_one(element, token.start, token.end)
            if not element.block and not element.opaque and self._translated:
                self._run.items.append(Item("single", token.start, token.end))

    def _close_one(self, element: Element, end: int, after: int | None = None) -> None:
        after = end if after is None else after
        if element.opaque:
            self._flush(self._open.block, None)
            self._run = self._suspended.pop()
            self._run.items.append(Item("single", element.start, after))
        elif element.block:
            self._flush(element, after)

    def _flush(self, block: Element | None, ended_at: int | None) -> None:
        """End the run of text."""
        run, self._run = self._run, self._new_run()
        if not run.items:
            return
        around = Around(block, ended_at, bool(self._suspended), self._open.has("nav"))
        found = block_segment(self._text, run, around, xml=self._xml)
        if found is not None:
            self._leave_headings(block)
            self._add(*found)
            if block is not None:
                block.texts += 1
                self._enter_heading(block, found[0])

    def _new_run(self) -> Run:
        self._runs += 1
        return Run(self._runs)

    def _add(self, segment: Segment, place: Place) -> None:
        """Add a segment, with its line and the headings above it."""
        if place.start >= self._counted:
            self._line += self._text.count("\n", self._counted, place.start)
        else:  # a block comes after the attributes of the markup in it
            self._line -= self._text.count("\n", place.start, self._counted)
        self._counted = place.start
        above = tuple(text for _, text in self._headings or ())
        segments, places = self._page.segments, self._page.places
        index = len(places)
        while index and places[index - 1].start >= place.end:
            index -= 1  # markup at the end of the block is no part of the segment
        segments.insert(index, replace(segment, place=f"line {self._line}", headings=above))
        places.insert(index, place)

    def _leave_headings(self, block: Element | None) -> None:
        """Forget the headings that a heading ends: those of its level and below."""
        if self._headings and block is not None and block.name in _HEADINGS:
            while self._headings and self._headings[-1][0] >= block.name:
                self._headings.pop()

    def _enter_heading(self, block: Element, segment: Segment) -> None:
        if self._headings is not None and block.name in _HEADINGS:
            self._headings.append((block.name, plain(segment.text)))
