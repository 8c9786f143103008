"""What a paragraph of Office Open XML is made of: texts, markup, and elements around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.xml.tree import XmlElement

_NONE: Final = b""


@dataclass(frozen=True, slots=True)
class Format:
    """The formatting of runs: what it is compared by, and its element as it is written."""

    key: bytes = _NONE
    raw: bytes = _NONE


@dataclass(frozen=True, slots=True)
class RunText:
    """A run's text, with the range of the run."""

    text: str
    format: Format
    start: int
    end: int
    mixed: bool = False
    """Whether the run holds other things too, so that it is kept as a whole."""
    elements: tuple[XmlElement, ...] = ()
    """What holds the text."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Markup that stays: a range, which may have to be put into a run of its own."""

    start: int
    end: int
    before: bytes = b""
    after: bytes = b""
    run: tuple[int, int] | None = None
    """Range of its run, if this holds texts or wrappers too."""
    in_field: bool = False


@dataclass(frozen=True, slots=True)
class Wrapper:
    """An element with runs in it; if it is itself in a run, it may be put into one of its own."""

    element: XmlElement
    items: list[Item]
    before: bytes = b""
    after: bytes = b""
    run: tuple[int, int] | None = None
    """Range of its run, if it is in one."""


Item = RunText | Fixed | Wrapper


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


def texts(items: Sequence[Item]) -> Iterator[RunText]:
    """Yield the texts of all levels in their order."""
    for each in items:
        if isinstance(each, RunText):
            yield each
        elif isinstance(each, Wrapper):
            yield from texts(each.items)


def _trims(item: Item) -> bool:
    if isinstance(item, Fixed):
        return item.run is None
    return isinstance(item, RunText) and item.text.isspace() and not item.mixed


def extent(items: Sequence[Item]) -> tuple[int, int]:
    """Return the range of bytes that trimmed items occupy."""
    return _range(items[0])[0], _range(items[-1])[1]


def _range(item: Item) -> tuple[int, int]:
    if isinstance(item, Fixed | Wrapper) and item.run is not None:
        return item.run
    whole = item.element if isinstance(item, Wrapper) else item
    return whole.start, whole.end


def base(items: Sequence[Item]) -> Format:
    """Return the base formatting of a level."""
    formats = (each.format for each in items if isinstance(each, RunText))
    return min(formats, key=lambda each: (len(each.key), each.key), default=Format())
