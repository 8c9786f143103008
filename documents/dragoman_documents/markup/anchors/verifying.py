"""The check of an output with ids: it reads as the one that was verified without them.

Removing the ids gives the verified bytes. What they change of the reading is looked for where it
can be: other syntax may reach over lines, so it is found in the whole page again; Markdown itself
goes no further than its heading, so only headings are parsed again. In doubt the whole page is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from dragoman_documents.codec import Codec, DocumentError, Extraction, Options
from dragoman_documents.encodings import decoded, expecting
from dragoman_documents.markup.anchors.pages import Insertion, inserted, layouts
from dragoman_documents.markup.markdown.codec import MarkdownLayout
from dragoman_documents.markup.markdown.events import MarkdownBlock, MarkdownToken, parsed
from dragoman_documents.markup.markdown.front_matter import front_matter
from dragoman_documents.markup.markdown.masking import masked
from dragoman_documents.markup.markdown.masks import Mark, Masks
from dragoman_documents.markup.markdown.titles import Title
from dragoman_documents.markup.sites import site
from dragoman_documents.putting_back import Spliced

_TAG: Final = re.compile(r"<(/?[gx])([0-9]+)(/?)>")
_PAIR: Final = re.compile(r"<g1></g1>\s?|<x1/>\s?")
_LAST: Final = re.compile(r"\s?<x[0-9]+/>\Z")
_BRACKET: Final = re.compile(rf"{_TAG.pattern}|[\[\]]")
_LINE_END: Final = re.compile(rb"[\r\n]|\Z")
_BLANKS: Final = b" \t"


class Unverified(Exception):
    """Ids that cannot be written; the message says why."""


def verify(
    codec: Codec,
    made: bytes,
    output: Spliced,
    insertions: Sequence[Sequence[Insertion]],
    options: Options,
) -> None:
    """Raise Unverified unless an output differs from the verified one by the ids alone."""
    again = output.again
    if inserted(again, [[] for _ in insertions]) != output.data:
        raise Unverified("the output is not what was verified")
    with expecting(again.encoding):
        if isinstance(again.layout, MarkdownLayout):
            page = _Page(again.layout, decoded(made).text.encode(), insertions[0])
            if page.reads_the_same(options, mdx=codec.name == "mdx"):
                return
        _verify_whole(codec, made, again, insertions, options)


def _verify_whole(
    codec: Codec,
    made: bytes,
    again: Extraction,
    insertions: Sequence[Sequence[Insertion]],
    options: Options,
) -> None:
    try:
        last = codec.extract(made, replace(options, bilingual=False))
    except DocumentError as error:
        raise Unverified("the output with ids cannot be read") from error
    for page, before, some in zip(layouts(last), layouts(again), insertions, strict=True):
        if not _Page(before, page.source, some).is_there():
            raise Unverified("the output with ids holds something else")
    if len(last.segments) != len(again.segments):
        raise Unverified("the output with ids has other segments")
    pairs = zip(last.segments, again.segments, strict=True)
    defines = any(b"]: " in content for some in insertions for _, content in some)
    if any(not _is_same(a.text, b.text, defines=defines) for a, b in pairs):
        raise Unverified("the output with ids has other texts")


def _unpaired(text: str) -> str:
    """Return a text without an empty pair at its start, or a code of attributes at its end."""
    found = _PAIR.match(text)
    if found is None:
        return _LAST.sub("", text)
    return _TAG.sub(lambda tag: f"<{tag[1]}{int(tag[2]) - 1}{tag[3]}>", text[found.end() :])


def _is_same(with_ids: str, text: str, *, defines: bool) -> bool:
    """Return whether ids alone make the difference; what `defines` makes tags of brackets."""
    if with_ids == text or _unpaired(with_ids) == text:
        return True
    return defines and _BRACKET.sub("", with_ids) == _BRACKET.sub("", text)


class _Page:
    """A page with ids beside the same page without them."""

    def __init__(
        self, before: MarkdownLayout, source: bytes, insertions: Sequence[Insertion]
    ) -> None:
        self._before = before
        self._source = source
        self._insertions = sorted(insertions)
        self._ids = _Ids([(place, len(content)) for place, content in self._insertions])

    def is_there(self) -> bool:
        """Return whether the page is the one before with the insertions."""
        contents = (content for _, content in self._insertions)
        there = zip(contents, self._ids.starts, strict=True)
        return (
            all(self._source.startswith(content, start) for content, start in there)
            and self._ids.removed(self._source) == self._before.source
        )

    def reads_the_same(self, options: Options, *, mdx: bool) -> bool:
        """Return whether it is certain that the page reads as before."""
        headings = self._headings() if self.is_there() else None
        if headings is None:
            return False
        front = front_matter(self._source, options.site)
        behind = front.behind if front else 0
        masks = masked(self._source, behind, site(options.site), mdx=mdx)
        return self._has_the_same(masks) and self._parses_the_same(headings, masks.text)

    def _headings(self) -> list[tuple[int, int]] | None:
        """Return the headings with new ids, from a number sign on; None if one has none."""
        source, found = self._before.masks.source, list[tuple[int, int]]()
        ends = ((_line_end(source, block), block) for block in self._before.headings)
        for place, _ in self._insertions:
            end, block = next((each for each in ends if place <= each[0]), (0, None))
            if block is None:
                return None  # of definitions behind all text
            first = block.tokens[0].start
            sign = source.rfind(b"#", source.rfind(b"\n", 0, first) + 1, first)
            if block.underlined or sign < 0:
                return None
            found.append((sign, end))
        return found

    def _has_the_same(self, masks: Masks) -> bool:
        """Return whether the syntax that the parser does not see is that of the page before."""
        ids, before = self._ids, self._before.masks
        return (
            ids.removed(masks.text) == before.text
            and [*ids.marks(masks.marks)] == before.marks
            and [*ids.ranges(masks.lists)] == before.lists
            and dict(ids.ranges(masks.titles.items())) == before.titles
            and [*ids.titles(masks.attributes)] == before.attributes
            and [(kind, ids.back(place)) for kind, place in masks.left] == before.left
        )

    def _parses_the_same(self, headings: Sequence[tuple[int, int]], text: bytearray) -> bool:
        """Return whether the parser reads the headings with ids as those before."""
        old, new = bytearray(), bytearray()
        places: list[tuple[int, int]] = []
        pairs = zip(headings, self._insertions, self._ids.shifts, strict=False)
        for (start, end), (place, content), shift in pairs:
            length = len(content)
            begin = start + shift + (length if place < start else 0)
            line, changed = self._before.masks.text[start:end], text[begin : end + shift + length]
            if line.rstrip(_BLANKS) != changed.rstrip(_BLANKS):
                places.append((len(old) + place - start, length))
                old += line + b"\n\n"
                new += changed + b"\n\n"
        return not new or _Ids([]).tokens(old) == _Ids(places).tokens(new)


def _line_end(source: bytes, block: MarkdownBlock) -> int:
    found = _LINE_END.search(source, block.tokens[-1].end)
    return found.start() if found else len(source)


class _Ids:
    """Insertions into a text of some length at places of it, as ranges of the longer text."""

    def __init__(self, insertions: Sequence[tuple[int, int]]) -> None:
        self.shifts = [0, *accumulate(length for _, length in insertions)]
        """How much of them is before each, and before the end."""
        pairs = zip(insertions, self.shifts, strict=False)
        self.starts = [place + shift for (place, _), shift in pairs]

    def removed(self, text: bytes | bytearray) -> bytes:
        """Return a text without them."""
        ends = [start + self._length(number) for number, start in enumerate(self.starts)]
        pieces = zip([0, *ends], [*self.starts, len(text)], strict=True)
        return b"".join(text[start:end] for start, end in pieces)

    def back(self, place: int) -> int:
        """Return the place in the text without them."""
        number = bisect_right(self.starts, place) - 1
        if number < 0:
            return place
        within = min(place - self.starts[number], self._length(number))
        return place - self.shifts[number] - within

    def _holds(self, start: int, end: int) -> bool:
        """Return whether a range is in one of them."""
        number = bisect_right(self.starts, start) - 1
        return number >= 0 and end <= self.starts[number] + self._length(number)

    def _length(self, number: int) -> int:
        return self.shifts[number + 1] - self.shifts[number]

    def ranges(self, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the ranges that are in none of them, as those of the text without them."""
        for start, end in found:
            if not self._holds(start, end):
                yield self.back(start), self.back(end)

    def marks(self, found: Iterable[Mark]) -> Iterator[Mark]:
        """Yield the marks that are in none of them, as those of the text without them."""
        for start, end, kind, partner in found:
            if not self._holds(start, end):
                yield Mark(self.back(start), self.back(end), kind, self.back(partner))

    def titles(self, found: Iterable[Title]) -> Iterator[Title]:
        """Yield titles as those of the text without them."""
        for each in found:
            yield replace(each, start=self.back(each.start), end=self.back(each.end))

    def tokens(self, text: bytearray) -> list[list[MarkdownToken]]:
        """Return the tokens of each block of a text that are not in them."""
        return [
            [
                each._replace(start=self.back(each.start), end=self.back(each.end))
                for each in block.tokens
                if not self._holds(each.start, each.end)
            ]
            for block in parsed(bytes(text))
            if isinstance(block, MarkdownBlock)
        ]
