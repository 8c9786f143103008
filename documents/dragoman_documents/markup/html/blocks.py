"""Blocks of HTML as segments: the text of each, its inline codes, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NamedTuple

from dragoman_documents.codec import InlineCode, Kind, Segment
from dragoman_documents.inline_codes import (
    LOOKALIKE,
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    composed,
)
from dragoman_documents.markup.html.elements import KINDS, HtmlElement, names
from dragoman_documents.markup.html.text import (
    decoded_text,
    escaped,
    invisible,
    is_text,
    trimmed,
    unknown_references,
)

Doubling = Literal["copy", "div", "span", "text"]
"""How a bilingual document shows a translation: in a copy of the block after it, in an own `div`
after the text, in a `span` within the text, or as text after the text."""
_COPIED: Final = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6"})
_FLOW: Final = names(
    "address article aside blockquote body center dd details dialog div dt fieldset figure footer"
    " form header li main section search td th"
)
_TEXT_ONLY: Final = frozenset({"title", "option", "text", "doctitle", "navlabel"})


@dataclass(slots=True)
class HtmlItem:
    """A part of a run: text, or markup. `mate` is the index of the other half of a pair."""

    kind: Literal["text", "open", "close", "single"]
    start: int
    end: int
    mate: int = -1


@dataclass(slots=True)
class Run:
    """The text and markup between two boundaries of blocks."""

    items: list[HtmlItem] = field(default_factory=list)

    def close(self, opening: int, start: int, end: int) -> None:
        """Add the end tag of the markup whose start tag is the item of this index.

        A pair without content is a single one, because no text can be put into it.
        """
        items = self.items
        if opening == len(items) - 1:
            items[opening] = HtmlItem("single", items[opening].start, end)
        else:
            items[opening].mate = len(items)
            items.append(HtmlItem("close", start, end, opening))

    def paired(self) -> list[HtmlItem]:
        """Return the items; a start tag whose end tag is not among them is a single one."""
        for item in self.items:
            if item.kind == "open" and item.mate < 0:
                item.kind = "single"
        return self.items


class HtmlBlock(NamedTuple):
    """A segment as far as its markup says."""

    text: str
    kind: Kind
    codes: tuple[InlineCode, ...]
    doubled: bool

    def segment(self, place: str, headings: tuple[str, ...]) -> Segment:
        """Return the segment."""
        text, kind, codes, doubled = self
        return Segment(text, place, kind, codes, headings=headings, doubled=doubled)


class HtmlPlace(NamedTuple):
    """Where a segment is in the document."""

    start: int
    end: int
    codes: tuple[tuple[int, int] | None, ...] = ()
    """Per inline code the range of its markup; None for text that looks like a tag of ours."""
    doubling: Doubling | None = None
    """None for an attribute."""
    after: int = -1
    """Position at which a bilingual document has the translation."""
    block: tuple[int, int] = (0, 0)
    """Range of the start tag of the block."""
    wrapping: tuple[tuple[int, int], ...] = ()
    """Ranges of the tags around all of the text: start and end tag of each, outermost first."""
    texts: tuple[tuple[int, int], ...] = ()
    """Ranges of the text between the codes, which the document spells in its own way."""
    preserved: bool = False
    """Whether its blanks are shown as they are."""


class Around(NamedTuple):
    """What surrounds a run when it ends."""

    block: HtmlElement | None
    ended_at: int | None = None
    """Where the block ends, if the run ends with it."""
    nested: bool = False
    """Whether the run stands in an inline code of another."""
    in_navigation: bool = False
    preserved: bool = False
    """Whether its blanks and line breaks are kept."""


def block_segment(
    text: str, run: Run, around: Around, *, xml: bool
) -> tuple[HtmlBlock, HtmlPlace] | None:
    """Return the text of a run and its place; None if it has no text."""
    items = run.paired()
    span = _bounds(text, items)
    if span is None:
        return None
    block = around.block
    preserved = around.preserved
    content, codes, ranges = _content(text, items, span, xml=xml, preserved=preserved)
    if not is_text(content):
        return None
    doubling = _doubling(around)
    after = span.after
    if doubling == "copy" and around.ended_at is not None:
        after = around.ended_at
    place = HtmlPlace(
        span.start,
        span.end,
        ranges,
        doubling,
        after,
        (block.start, block.tag_end) if block is not None else (0, 0),
        tuple((item.start, item.end) for item in span.wrapping),
        tuple(_text_ranges(text, items, span, xml=xml)),
        preserved,
    )
    kind = KINDS.get(block.name, "paragraph") if block is not None else "paragraph"
    return HtmlBlock(content, kind, codes, doubling in {"copy", "div"}), place


def _text_ranges(
    text: str, items: Sequence[HtmlItem], span: _Span, *, xml: bool
) -> Sequence[tuple[int, int]]:
    """Return the ranges of the text of a segment, without unknown references in XML."""
    first, last = span.start, span.end
    found = [
        (max(item.start, first), min(item.end, last))
        for item in items[span.first : span.last + 1]
        if item.kind == "text"
    ]
    if not xml or text.find("&", first, last) < 0:
        return found
    return [each for start, end in found for each in _known(text, start, end)]


def _known(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what is between the unknown references of a text."""
    for match in unknown_references(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


def _doubling(around: Around) -> Doubling:
    block = around.block
    name = block.name if block is not None else "body"
    if name in _TEXT_ONLY:
        return "text"
    if around.nested or around.in_navigation:
        return "span"
    if name in _COPIED:
        sole = block is not None and block.texts == 0 and around.ended_at is not None
        return "copy" if sole else "span"
    return "div" if name in _FLOW else "span"


class _Span(NamedTuple):
    """The part of a run that a segment holds."""

    first: int
    last: int
    start: int
    end: int
    wrapping: list[HtmlItem]
    """The tags around all of the text."""
    after: int
    """Where the outermost of them ends."""


def _bounds(text: str, items: Sequence[HtmlItem]) -> _Span | None:
    """Return the part of a run without blanks, markup that shows nothing, and pairs around it."""
    first, last = 0, len(items) - 1
    wrapping: list[HtmlItem] = []
    start = after = -1
    while True:
        while first <= last and (start := _shown(text, items[first])[0]) < 0:
            first += 1
        if first > last:
            return None
        while (end := _shown(text, items[last])[1]) < 0:
            last -= 1
        after = max(after, end)
        if items[first].kind != "open" or items[first].mate != last:
            return _Span(first, last, start, end, wrapping, after)
        wrapping += (items[first], items[last])
        first, last = first + 1, last - 1


def _content(
    text: str, items: Sequence[HtmlItem], span: _Span, *, xml: bool, preserved: bool
) -> tuple[str, tuple[InlineCode, ...], tuple[tuple[int, int] | None, ...]]:
    """Return the text of a segment, its codes, and their ranges."""
    raw = text[span.start : span.end]
    plain = span.first == span.last and items[span.first].kind == "text"
    if plain and "<" not in raw and "&" not in raw:
        return decoded_text(raw, xml=xml, preserved=preserved), (), ()
    ranges: list[tuple[int, int] | None] = []
    pieces = _pieces(text, items, span, ranges, xml=xml, preserved=preserved)
    content, codes = composed(pieces, partial(escaped, xml=xml))
    return content, codes, tuple(ranges)


def _shown(text: str, item: HtmlItem) -> tuple[int, int]:
    """Return the range of an item without blanks at its ends; -1 and -1 if it shows nothing."""
    start, end = item.start, item.end
    if item.kind == "text":
        start, end = trimmed(text, start, end)
        return (start, end) if start < end else (-1, -1)
    return (-1, -1) if item.kind == "single" and invisible(text[start:end]) else (start, end)


def _pieces(
    text: str,
    items: Sequence[HtmlItem],
    span: _Span,
    ranges: list[tuple[int, int] | None],
    *,
    xml: bool,
    preserved: bool,
) -> Iterator[Piece]:
    """Yield the pieces of a segment; the range of each of its codes is added to `ranges`."""
    for item in items[span.first : span.last + 1]:
        start, end, kind = item.start, item.end, item.kind
        if kind == "text":
            start, end = max(start, span.start), min(end, span.end)
            if xml:
                yield from _texts(text, start, end, ranges, preserved=preserved)
            else:
                yield _decoded(text[start:end], ranges, xml=xml, preserved=preserved)
        elif kind == "close":
            yield ClosingCode()
        else:
            ranges.append((start, end))
            if kind == "single":
                yield SingleCode(text[start:end])
            else:
                closing = items[item.mate]
                yield OpeningCode(text[start:end], text[closing.start : closing.end])


def _texts(
    text: str,
    start: int,
    end: int,
    ranges: list[tuple[int, int] | None],
    *,
    preserved: bool,
) -> Iterator[Piece]:
    """Yield a text of XML, and references that only the document's own DTD knows as markup."""
    for match in unknown_references(text, start, end):
        yield _decoded(text[start : match.start()], ranges, xml=True, preserved=preserved)
        ranges.append(match.span())
        yield SingleCode(match[0])
        start = match.end()
    yield _decoded(text[start:end], ranges, xml=True, preserved=preserved)


def _decoded(raw: str, ranges: list[tuple[int, int] | None], *, xml: bool, preserved: bool) -> str:
    """Return a text decoded; what looks like a tag of ours becomes a code without a range."""
    text = decoded_text(raw, xml=xml, preserved=preserved)
    if "<" in text:
        ranges.extend(None for _ in LOOKALIKE.finditer(text))
    return text
