"""References to headings by their text, `[References]`: definitions let translated ones work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman_documents.markup.anchors.headings import Heading
from dragoman_documents.markup.anchors.pages import Insertion
from dragoman_documents.markup.markdown.codec import MarkdownLayout
from dragoman_documents.markup.markdown.extracting import MarkdownSlot
from dragoman_documents.markup.markdown.inlines import normalized
from dragoman_documents.markup.markdown.raw_counts import labels

_TEXT: Final = r"\[((?:[^\[\]\\]|\\.)+)\]"
_REFERENCE: Final = re.compile(rf"(?<![!\]\\]){_TEXT}(?:\[\]|{_TEXT})?(?![\[(:{{])")
_CODE: Final = re.compile(r"(`+)(?:(?!`).|(?!\1)`)*?\1(?!`)", re.DOTALL)

Page = tuple[MarkdownLayout, Sequence[Heading], Sequence[str | None]]
"""A page with its headings and their ids."""


def definitions(before: Page, after: Page) -> list[Insertion]:
    """Return the definitions of an output's references that would lead nowhere without them.

    `before` is its source, whose references it has in the same order.
    """
    old, new = _places(before), _places(after)
    defined: dict[str, str] = {}
    for label, place in _translated(before[0], after[0], old):
        name = before[2][place]
        if name and new.get(normalized(label)) != place:
            defined.setdefault(" ".join(label.split()), name)
    if not defined:
        return []
    source = after[0].source
    newline = "\r\n" if b"\r\n" in source else "\n"
    lines = [f"[{label}]: #{name}{newline}" for label, name in defined.items()]
    start = newline if source.endswith(b"\n") else newline * 2
    return [Insertion(len(source), "".join([start, *lines]).encode())]


def _places(page: Page) -> dict[str, int]:
    """Return the number of the first heading of each text that no definition takes as label."""
    layout, headings, _ = page
    defined, found = labels(layout.source), dict[str, int]()
    for number, heading in enumerate(headings):
        text = normalized(layout.source[heading.start : heading.end].decode())
        if text not in defined:
            found.setdefault(text, number)
    return found


def _translated(
    before: MarkdownLayout, after: MarkdownLayout, places: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Yield the labels of an output's references, and the headings of the source's."""
    for old, new in zip(before.slots, after.slots, strict=True):
        was = _labels(before, old)
        if any(normalized(label) in places for label in was):
            for label, now in zip(was, _labels(after, new), strict=False):
                place = places.get(normalized(label))
                if place is not None:
                    yield now, place


def _labels(layout: MarkdownLayout, slot: MarkdownSlot) -> list[str]:
    """Return the labels of what may be references in a unit."""
    raw = layout.source[slot.start : slot.end]
    if slot.unit is None or b"[" not in raw:
        return []
    return [each[2] or each[1] for each in _REFERENCE.finditer(_CODE.sub("", raw.decode()))]
