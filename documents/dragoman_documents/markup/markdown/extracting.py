"""Segments of a Markdown document, and where they are in its bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dragoman_documents.codec import (
    DocumentError,
    Options,
    Remark,
    RemarkKind,
    Segment,
)
from dragoman_documents.inline_codes import (
    composed,
)
from dragoman_documents.markup.html.reader import Page
from dragoman_documents.markup.markdown import html_blocks as markdown_blocks
from dragoman_documents.markup.markdown.events import (
    IndentedCode,
    MarkdownBlock,
    MarkdownToken,
    definitions,
    parsed,
)
from dragoman_documents.markup.markdown.front_matter import (
    FrontMatter,
    Value,
    front_matter,
    values,
)
from dragoman_documents.markup.markdown.html_blocks import Html, HtmlSlots
from dragoman_documents.markup.markdown.indentation import parsed_without_code
from dragoman_documents.markup.markdown.inline_html import titles_of_tags
from dragoman_documents.markup.markdown.masking import masked
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.markdown.titles import Syntax, Title, title_at, titles
from dragoman_documents.markup.markdown.unit_codes import (
    InnerTitle,
    digestible,
    inner_titles,
    text_and_codes,
)
from dragoman_documents.markup.markdown.units import MarkdownUnit, has_lines, units
from dragoman_documents.markup.sites import site
from dragoman_documents.splicing import skeleton

_BLANKS: Final = " \t"
_LEFT: Final = {
    "directive": "unknown directives with text, and terms of glossaries",
    "shortcode": "shortcodes with text",
    "attribute": "attributes with text that the site does not name",
    "expression": "expressions with text",
    "front_matter": "values of front matter with text that no key names",
    "table": "tables that CommonMark does not know",
}
"""Kinds of text in other syntax that readers see and that are not translated."""


class MarkdownSlot(NamedTuple):
    """Where a segment is in the source: a title, or a unit with the titles inside it."""

    start: int
    end: int
    unit: MarkdownUnit | None = None
    titles: tuple[InnerTitle, ...] = ()
    value: Value | None = None
    """Of front matter."""
    syntax: Syntax = "markdown"
    """Of a title."""


@dataclass(slots=True)
class Extracting:
    """Segments and slots of a document, in the order of its blocks."""

    source: bytes
    options: Options
    mdx: bool
    segments: list[Segment] = field(default_factory=list)
    slots: list[MarkdownSlot] = field(default_factory=list)
    html: list[HtmlSlots] = field(default_factory=list)
    headings: list[MarkdownBlock] = field(default_factory=list)
    masks: Masks = field(init=False)
    """What the parser does not see."""
    _left: list[str] = field(default_factory=list)
    """The places of blocks of HTML with texts that are not translated."""
    _attributes: deque[Title] = field(default_factory=deque)
    _lists: deque[tuple[int, int]] = field(default_factory=deque)
    """Lists of attributes behind spans, links and images of blocks that are not read yet."""
    _metadata: list[int] = field(default_factory=list)
    """Where front matter has other texts."""
    _unread: str | None = None
    """Why its front matter cannot be read."""
    _codes: list[str] = field(default_factory=list)
    _inner: set[int] = field(default_factory=set)
    _headings: list[tuple[int, str]] = field(default_factory=list)
    _counted: int = 0
    _line: int = 1
    _newline: bytes = b"\n"

    def __post_init__(self) -> None:
        if b"\n" not in self.source:
            self._newline = b"\r"

    def run(self) -> None:
        """Add all segments of the document."""
        front = front_matter(self.source, self.options.site)
        if front is not None:
            self._add_front_matter(front)
        behind = front.behind if front else 0
        self.masks = masked(self.source, behind, site(self.options.site), mdx=self.mdx)
        self._attributes = deque(self.masks.attributes)
        self._lists = deque(self.masks.lists)
        found = parsed_without_code(self.masks) if self.mdx else parsed(bytes(self.masks.text))
        for block in found:
            if not isinstance(block, IndentedCode):
                self._add(block)
        self._add_attributes(len(self.source))
        text = bytes(self.masks.text)
        if b"]:" in text:
            self._counted, self._line = 0, 1
            for start, end in sorted(definitions(text.decode())):
                self._add_titles(title_at(start, end, self.source))

    def skeleton(self) -> str:
        """Return the digest of all that is not a segment, and of the codes of those that are."""
        outer = (slot for index, slot in enumerate(self.slots) if index not in self._inner)
        ranges = [(slot.start, slot.end) for slot in outer]
        ranges += [(block.start, block.end) for block in self.html]
        blocks = map(markdown_blocks.skeleton, self.html)
        return skeleton(self.source, sorted(ranges), *self._codes, *blocks)

    def remarks(self) -> Iterator[Remark]:
        """Yield what of the document is left as it is, though readers see text in it: by kind."""
        if self._left:
            detail = "blocks of HTML are left as they are, the first one here"
            yield Remark(self._left[0], detail, "html", len(self._left))
        if self._unread is not None:
            detail = f"its front matter is left as it is: {self._unread}"
            yield Remark("line 1", detail, "front_matter")
        kinds: dict[RemarkKind, list[int]] = {}
        if self._metadata:
            kinds["front_matter"] = self._metadata
        for kind, place in sorted(self.masks.left, key=lambda each: each[1]):
            kinds.setdefault(kind, []).append(place)
        self._counted, self._line = 0, 1
        for kind, places in sorted(kinds.items(), key=lambda each: each[1][0]):
            detail = f"{_LEFT[kind]} are left as they are, the first one here"
            yield Remark(self._place(places[0]), detail, kind, len(places))

    def _add(self, block: MarkdownBlock | Html) -> None:
        if isinstance(block, Html):
            self._add_html(block)
            return
        while block.level and self._headings and self._headings[-1][0] >= block.level:
            self._headings.pop()
        if block.tokens[0].start in self.masks.titles:
            block.kind, block.level, block.paragraph = "title", 0, False
        if block.level:
            self.headings.append(block)
        if not self._has_added(block):
            rest = deque(self._titles_of(block))
            for unit in units(block, self.masks):
                within = self._within(unit, rest)
                self._add_unit(unit, within)
            self._add_titles(rest)
        if block.level and self.options.headings:
            self._add_heading(block)

    def _has_added(self, block: MarkdownBlock) -> bool:
        """Add a block that is one text without other syntax; return whether it is one."""
        token = block.tokens[0]
        kind, start, end, text = token
        if len(block.tokens) > 1 or kind != "text" or not text[0].isalpha() or text[-1] in _BLANKS:
            return False
        if "<" in text or "://" in text or self.masks.any_within(start, end):
            return False
        if self._lists or (self._attributes and self._attributes[0].start < end):
            return False
        unit = MarkdownUnit(start, end, block.tokens, block, has_lines(block), block.paragraph)
        self.slots.append(MarkdownSlot(start, end, unit))
        place, above = self._place(start), self._above()
        doubled = block.paragraph
        self.segments.append(Segment(text, place, block.kind, headings=above, doubled=doubled))
        return True

    def _titles_of(self, block: MarkdownBlock) -> Sequence[Title]:
        """Return the titles in a block: of links, of tags, and in lists of attributes."""
        tokens, source = block.tokens, self.source
        start, end = tokens[0].start, tokens[-1].end
        found: list[Title] = []
        if source.find(b'")', start, end) >= 0 or source.find(b"')", start, end) >= 0:
            found += titles(tokens, source)
        of_links = len(found)
        if not self.mdx and source.find(b"<", start, end) >= 0:
            found += titles_of_tags(tokens, source)
        if self._lists and self._lists[0][0] < block.tokens[-1].end:
            found += self._in_lists(block)
        return found if len(found) == of_links else sorted(found, key=_start)

    def _within(self, unit: MarkdownUnit, rest: deque[Title]) -> Sequence[Title]:
        """Add the titles before a unit; return those in it."""
        if not rest and not self._attributes:
            return ()
        before = [*_until(unit.start, rest), *_until(unit.start, self._attributes)]
        self._add_titles(sorted(before, key=_start))
        within = [*_until(unit.end, rest), *_until(unit.end, self._attributes)]
        codes = [token for token in unit.tokens if token.kind != "text"]
        return sorted((each for each in within if _is_in(codes, each)), key=_start)

    def _in_lists(self, block: MarkdownBlock) -> Iterator[Title]:
        """Yield the texts of lists of attributes in a block; in its inline code there are none."""
        tokens, names = iter(block.tokens), site(self.options.site).attributes
        token = next(tokens)
        while self._lists and self._lists[0][0] < block.tokens[-1].end:
            start, end = self._lists.popleft()
            while token.end <= start:
                token = next(tokens)
            if token.start <= start and (token.kind == "text" or token.end == end):
                yield from self.masks.attributes_in(start, end, names, "references")

    def _add_attributes(self, end: int) -> None:
        self._add_titles(_until(end, self._attributes))

    def _add_front_matter(self, front: FrontMatter) -> None:
        """Add the texts of front matter; one that is neither YAML nor TOML is left alone."""
        try:
            found = values(self.source, front, self.options)
        except DocumentError as error:
            self._unread = error.detail
            return
        self._metadata = found.left
        for value in found.chosen:
            self.slots.append(MarkdownSlot(value.start, value.end, value=value))
            text, codes = composed([value.text])
            place = self._place(value.start)
            self.segments.append(Segment(text, place, "metadata", codes, doubled=False))

    def _add_html(self, block: Html) -> None:
        """Add a block of HTML up to the first line of other syntax in it."""
        self._add_attributes(block.start)
        page, is_translated = markdown_blocks.page_of(block, self.source)
        if not page.segments:
            return
        if self.mdx or not is_translated:
            self._left.append(self._place(block.start))
            return
        behind = self._other_syntax_in(block)
        if behind == block.end:
            self._add_page(block, page)
            return
        first, rest = block._replace(end=behind), block._replace(start=behind)
        self._add_page(first, markdown_blocks.page_of(first, self.source)[0])
        if markdown_blocks.page_of(rest, self.masks.text)[0].segments:
            self._left.append(self._place(behind))

    def _add_page(self, block: Html, page: Page) -> None:
        first = len(self.slots)
        self.html.append(HtmlSlots(block.start, block.end, page, first))
        self._inner.update(range(first, first + len(page.segments)))
        done, start = 0, block.start
        for place, segment in zip(page.places, page.segments, strict=True):
            start += len(page.text[done : place.start].encode())
            done = max(done, place.start)
            self.slots.append(MarkdownSlot(start, start))
            self.segments.append(segment._replace(place=self._place(start), headings=self._above()))

    def _other_syntax_in(self, block: Html) -> int:
        """Return where the first line of other syntax in a block of HTML begins, or its end."""
        marks = self.masks.within(block.start, block.end)
        place = next((mark.start for mark in marks if mark.kind == "line"), block.end)
        if self._attributes and self._attributes[0].start < place:
            place = self._attributes[0].start
        return place if place == block.end else self.masks.text.rfind(b"\n", 0, place) + 1

    def _add_titles(self, found: Iterable[Title]) -> None:
        for title in found:
            self.slots.append(MarkdownSlot(title.start, title.end, syntax=title.syntax))
            place, above = self._place(title.start), self._above()
            self.segments.append(
                Segment(title.text, place, "attribute", headings=above, doubled=False)
            )

    def _add_unit(self, unit: MarkdownUnit, within: Sequence[Title]) -> None:
        place = self._place(unit.start)
        inner = self._add_inner(unit, within) if within else ()
        self.slots.append(MarkdownSlot(unit.start, unit.end, unit, inner))
        text, codes = text_and_codes(unit.tokens, self.source)
        if codes or unit.wrap[0]:
            self._codes.append("\0".join((*unit.wrap, digestible(codes, inner))))
        kind, above = unit.block.kind, self._above()
        doubled = can_follow(unit)
        self.segments.append(Segment(text, place, kind, codes, headings=above, doubled=doubled))

    def _add_inner(self, unit: MarkdownUnit, within: Sequence[Title]) -> tuple[InnerTitle, ...]:
        first = len(self.slots)
        self._inner.update(range(first, first + len(within)))
        self._add_titles(within)
        return tuple(inner_titles(unit, within, first, self.source))

    def _add_heading(self, block: MarkdownBlock) -> None:
        text = "".join(token.text if token.kind == "text" else " " for token in block.tokens)
        self._headings.append((block.level, " ".join(text.split())))

    def _above(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._headings) if self._headings else ()

    def _place(self, start: int) -> str:
        """Return the line of a byte; each byte is counted once, because places rise."""
        if start > self._counted:
            self._line += self.source.count(self._newline, self._counted, start)
            self._counted = start
        return f"line {self._line}"


def _start(title: Title) -> int:
    return title.start


def _is_in(codes: Iterable[MarkdownToken], title: Title) -> bool:
    return any(token.start < title.start and title.end < token.end for token in codes)


def _until(place: int, titles: deque[Title]) -> Iterator[Title]:
    """Take the titles that begin before a place from those that are left."""
    while titles and titles[0].start < place:
        yield titles.popleft()


def can_follow(unit: MarkdownUnit) -> bool:
    """Return whether a copy can stand after a unit: it is a whole paragraph or heading."""
    breaks = unit.block.level and any(token.kind == "hard" for token in unit.tokens)
    return unit.whole and not breaks
