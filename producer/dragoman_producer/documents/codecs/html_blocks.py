"""Blocks of HTML as segments: the text of each, its inline codes, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from dragoman_producer.documents.codecs.codec import Segment
from dragoman_producer.documents.codecs.html_elements import KINDS, Element, names
from dragoman_producer.documents.codecs.html_text import (
    decoded_text,
    escaped,
    invisible,
    is_text,
    trimmed,
    unknown_references,
)
from dragoman_producer.documents.codecs.inline_codes import (
    LOOKALIKE,
    Closing,
    Opening,
    Piece,
    Single,
    composed,
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
class Item:
    """A part of a run: text, or markup. `mate` is the index of the other half of a pair."""

    kind: Literal["text", "open", "close", "single"]
    start: int
    end: int
    mate: int = -1


@dataclass(slots=True)
class Run:
    """The text and markup between two boundaries of blocks."""

    number: int
    items: list[Item] = field(default_factory=list)

    def paired(self) -> list[Item]:
        """Return the items with each half of a pair that lacks the other as a single one.

        A pair without content is a single one too, because no text can be put into it.
        """
        if len(self.items) == 1 and self.items[0].kind == "text":
            return self.items
        found: list[Item] = []
        moved: dict[int, int] = {}
        for index, item in enumerate(self.items):
            if item.kind == "close" and item.mate == index - 1 >= 0:
                found[-1] = Item("single", found[-1].start, item.end)
            elif item.kind == "close" and item.mate >= 0:
                mate = moved[item.mate]
                found[mate].mate = len(found)
                found.append(Item("close", item.start, item.end, mate))
            else:
                moved[index] = len(found)
                kind = "single" if item.mate < 0 and item.kind != "text" else item.kind
                found.append(Item(kind, item.start, item.end))
        return found


@dataclass(frozen=True, slots=True)
class Place:
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


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds a run when it ends."""

    block: Element | None
    ended_at: int | None = None
    """Where the block ends, if the run ends with it."""
    nested: bool = False
    """Whether the run stands in an inline code of another."""
    in_navigation: bool = False


def block_segment(
    text: str, run: Run, around: Around, *, xml: bool
) -> tuple[Segment, Place] | None:
    """Return the segment of a run, without its line, and its place; None if it has no text."""
    items = run.paired()
    first, last, wrapping, after = _bounds(text, items)
    if first > last:
        return None
    block = around.block
    preserved = block is not None and block.preserved
    found = list(_pieces(text, items, first, last, xml=xml, preserved=preserved))
    content, codes = composed((piece for piece, _ in found), partial(escaped, xml=xml))
    if not is_text(content):
        return None
    doubling = _doubling(around)
    if doubling == "copy" and around.ended_at is not None:
        after = around.ended_at
    place = Place(
        *_range(text, items[first], items[last]),
        tuple(_code_ranges(found)),
        doubling,
        after,
        (block.start, block.tag_end) if block is not None else (0, 0),
        tuple((item.start, item.end) for item in wrapping),
    )
    kind = KINDS.get(block.name, "paragraph") if block is not None else "paragraph"
    return Segment(content, "", kind, codes, doubled=doubling in {"copy", "div"}), place


def _range(text: str, first: Item, last: Item) -> tuple[int, int]:
    start = trimmed(text, first.start, first.end)[0] if first.kind == "text" else first.start
    return start, _end(text, last)


def _code_ranges(
    pieces: Sequence[tuple[Piece, tuple[int, int] | None]],
) -> Iterator[tuple[int, int] | None]:
    """Yield the range of each inline code, in the order in which `composed` numbers them."""
    for piece, at in pieces:
        if isinstance(piece, str):
            yield from (None for _ in LOOKALIKE.finditer(piece))
        elif not isinstance(piece, Closing):
            yield at


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


def _bounds(text: str, items: Sequence[Item]) -> tuple[int, int, list[Item], int]:
    """Return the first and last item of the segment, the tags around it, and the end of all.

    Blanks, markup that shows nothing, and pairs around all of the text are left out.
    """
    first, last = 0, len(items) - 1
    wrapping: list[Item] = []
    after = -1
    while first <= last:
        if _is_edge(text, items[first]):
            first += 1
        elif _is_edge(text, items[last]):
            last -= 1
        else:
            if after < 0:
                after = _end(text, items[last])
            if items[first].kind != "open" or items[first].mate != last:
                break
            wrapping += (items[first], items[last])
            first, last = first + 1, last - 1
    return first, last, wrapping, after


def _end(text: str, item: Item) -> int:
    return trimmed(text, item.start, item.end)[1] if item.kind == "text" else item.end


def _is_edge(text: str, item: Item) -> bool:
    if item.kind == "text":
        start, end = trimmed(text, item.start, item.end)
        return start == end
    return item.kind == "single" and invisible(text[item.start : item.end])


def _pieces(
    text: str, items: Sequence[Item], first: int, last: int, *, xml: bool, preserved: bool
) -> Iterator[tuple[Piece, tuple[int, int] | None]]:
    """Yield the pieces of a segment, with the range of each that is markup."""
    for index in range(first, last + 1):
        item = items[index]
        at = (item.start, item.end)
        if item.kind == "close":
            yield Closing(), None
        elif item.kind == "open":
            closing = items[item.mate]
            yield Opening(text[slice(*at)], text[closing.start : closing.end]), at
        elif item.kind == "single":
            yield Single(text[slice(*at)]), at
        else:
            start, end = trimmed(text, *at)
            start, end = start if index == first else at[0], end if index == last else at[1]
            yield from _texts(text, start, end, xml=xml, preserved=preserved)


def _texts(
    text: str, start: int, end: int, *, xml: bool, preserved: bool
) -> Iterator[tuple[Piece, tuple[int, int] | None]]:
    """Yield a text decoded, and references that only the document's own DTD knows as markup."""
    for match in unknown_references(text, start, end) if xml else ():
        yield decoded_text(text[start : match.start()], xml=xml, preserved=preserved), None
        yield Single(match[0]), match.span()
        start = match.end()
    yield decoded_text(text[start:end], xml=xml, preserved=preserved), None
