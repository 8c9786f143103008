"""Places of segments in XML: replaced one inside another, and the digest of what stays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Protocol

from dragoman_documents.codec import Segment
from dragoman_documents.inline_codes import plain
from dragoman_documents.splicing import skeleton
from dragoman_text.spans import has_words

MOST_SHOWN: Final = 200
"""Characters of markup that an `InlineCode` shows; the codecs keep the markup itself."""

Inner = Callable[[int, int], bytes]
"""Returns a range of the part, with the translations of the segments inside it."""


class XmlWriter(Protocol):
    """How a translation is written into its place."""

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the bytes for the place. Raises ValueError if the tags do not fit."""
        ...

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the markup in the place, or a digest of it, without the segments inside it."""
        ...


class XmlSlot(NamedTuple):
    """A segment, and the bytes of its part that its translation replaces.

    A named tuple, as `Segment` is: there is one per segment.
    """

    segment: Segment
    start: int
    end: int
    writer: XmlWriter
    part: str = ""
    """Name of the member of an archive."""


@dataclass(slots=True)
class _Filled:
    slot: XmlSlot
    text: str
    inside: list[_Filled] = field(default_factory=list)
    written: bytes = b""


def translatable(text: str) -> bool:
    """Return whether a text has words, its tags and directives such as `%b` not counted."""
    return has_words(plain(text))


def usable(text: str | None) -> str | None:
    """Return a translation without blanks at its ends; None if it has no letter.

    A text without letters is no segment, so that the document would have one less. The source is
    kept instead, and the read-back reports it.
    """
    return text.strip() if text is not None and translatable(text) else None


def spliced(data: bytes, texts: Iterable[tuple[XmlSlot, str]]) -> bytes:
    """Return a part with translations in their slots, which may lie inside one another."""
    roots: list[_Filled] = []
    around: list[_Filled] = []
    outer_first: list[_Filled] = []
    for slot, text in sorted(texts, key=lambda each: (each[0].start, -each[0].end)):
        while around and around[-1].slot.end <= slot.start:
            around.pop()
        filled = _Filled(slot, text)
        (around[-1].inside if around else roots).append(filled)
        around.append(filled)
        outer_first.append(filled)
    for filled in reversed(outer_first):
        filled.written = filled.slot.writer.written(
            filled.text, partial(_content, data, filled.inside)
        )
    return _content(data, roots, 0, len(data))


def _content(data: bytes, filled: Sequence[_Filled], start: int, end: int) -> bytes:
    first = bisect_left(filled, start, key=lambda each: each.slot.start)
    parts: list[bytes] = []
    while first < len(filled) and filled[first].slot.end <= end:
        slot = filled[first].slot
        parts += (data[start : slot.start], filled[first].written)
        start, first = slot.end, first + 1
    parts.append(data[start:end])
    return b"".join(parts)


def digest(data: bytes, slots: Sequence[XmlSlot]) -> str:
    """Return the digest of a part without its slots, but with the markup inside of them."""
    ordered = sorted(slots, key=lambda each: (each.start, -each.end))
    outer: list[tuple[int, int]] = []
    fixed: list[str] = []
    for index, each in enumerate(ordered):
        if not outer or (each.start >= outer[-1][1] and (each.start, each.end) != outer[-1]):
            outer.append((each.start, each.end))
        fixed.append(each.writer.fixed(_ranges_inside(ordered, index)))
    return skeleton(data, outer, *fixed)


def _ranges_inside(ordered: Sequence[XmlSlot], index: int) -> list[tuple[int, int]]:
    """Return the outermost ranges of the slots inside one."""
    found: list[tuple[int, int]] = []
    for position in range(index + 1, len(ordered)):
        each = ordered[position]
        if each.start >= ordered[index].end:
            break
        if not found or each.start >= found[-1][1]:
            found.append((each.start, each.end))
    return found


def shown(markup: str) -> str:
    """Return markup as an `InlineCode` shows it: long markup only by its beginning."""
    return markup if len(markup) <= MOST_SHOWN else markup[:MOST_SHOWN] + "…"


def around(data: bytes, start: int, end: int, ranges: Sequence[tuple[int, int]]) -> str:
    """Return the markup between two places, without those of some sorted ranges that lie there."""
    inside: list[tuple[int, int]] = []
    index = bisect_left(ranges, (start, start))
    while index < len(ranges) and ranges[index][1] <= end:
        first, last = ranges[index]
        inside.append((first - start, last - start))
        index += 1
    return skeleton(data[start:end], inside) if inside else data[start:end].decode()
