"""A Markdown text in which other syntax is hidden from the parser, byte for byte.

The parser knows CommonMark with GitHub's extensions; sites write more: templates, directives,
admonitions, components. Every such construct is overwritten by neutral bytes of the same number, so
that the parser's places are places in the source:

- a line of other syntax becomes an empty heading, which ends a paragraph and has no text; a title
  in it becomes the heading's text
- a region of other syntax (code in a template, a formula) becomes an empty heading and blank lines
- inline syntax becomes commas, which are punctuation as its own first and last characters are; the
  marks say which tokens stand there
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from dragoman_documents.codec import RemarkKind
from dragoman_documents.markup.markdown.attributes import attributes, has_other_text
from dragoman_documents.markup.markdown.titles import Syntax, Title

MarkKind = Literal["code", "line", "open", "close", "before", "after", "hidden", "unread"]
"""`code`: a single code; `line`: lines of other syntax, which stay lines; `open` and `close`: the
ends of a pair; `before` and `after`: a part of the code that follows or precedes; `hidden`: what is
spelled otherwise for the parser alone; `unread`: a code that may hold text."""
_VISIBLE: Final = re.compile(rb"[^\r\n]")
_VISIBLE_LINE: Final = re.compile(rb"[^\r\n]+")


class Mark(NamedTuple):
    """Inline syntax at `[start:end)`."""

    start: int
    end: int
    kind: MarkKind
    partner: int = -1
    """Of an `open` the start of its `close`, and the other way round."""


@dataclass(slots=True)
class Masks:
    """What is hidden of one document, and what was found in it."""

    source: bytes
    text: bytearray = field(init=False)
    """The document as the parser reads it."""
    marks: list[Mark] = field(default_factory=list)
    """Without overlaps; sorted once all are found."""
    titles: dict[int, int] = field(default_factory=dict)
    """Starts and ends of titles of directives, which the parser reads as headings."""
    attributes: list[Title] = field(default_factory=list)
    """Texts of attributes on lines of other syntax, and in marks; sorted once all are found."""
    lists: list[tuple[int, int]] = field(default_factory=list)
    """Lists of attributes behind spans, links and images, unless they turn out to be in code."""
    left: list[tuple[RemarkKind, int]] = field(default_factory=list)
    """Kinds and places of texts that readers see and that are left in the source language."""
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text = bytearray(self.source)

    def line(self, start: int, end: int) -> None:
        """Hide a line: it is an empty heading without blanks at its end."""
        self._hide(start, end, (b"# " + b"#" * (end - start))[: end - start])

    def stay(self, start: int, end: int) -> None:
        """Let a line that the parser reads as it is stay a line, where it is no block."""
        self.marks.append(Mark(start, end, "line"))

    def head(self, start: int, end: int, head: bytes) -> None:
        """Hide what stands before a title, or before nothing: `head` stands at its start."""
        self._hide(start, end, (head + b" " * (end - start))[: end - start])

    def _hide(self, start: int, end: int, content: bytes) -> None:
        self.text[start:end] = content
        self.marks.append(Mark(start, end, "line"))  # for one that continues a paragraph

    def title(self, start: int, end: int) -> None:
        """Let the text at the end of a hidden line be a title."""
        self.titles[start] = end

    def region(self, start: int, end: int) -> None:
        """Hide lines, also those that are not indented as their first one."""
        found = _VISIBLE_LINE.match(self.source, start, end)
        first = found.end() if found else start
        self.text[first:end] = _VISIBLE.sub(b" ", self.source[first:end])
        if first > start:
            self.line(start, first)
            self.marks[-1] = Mark(start, end, "line")

    def blank(self, start: int, end: int) -> None:
        """Hide what the parser must not see at all."""
        self.text[start:end] = _VISIBLE.sub(b" ", self.source[start:end])

    def mark(self, start: int, end: int, kind: MarkKind = "code", partner: int = -1) -> None:
        """Hide inline syntax."""
        self.text[start:end] = b"," * (end - start)
        self.marks.append(Mark(start, end, kind, partner))

    def spell(self, start: int, end: int, content: bytes) -> None:
        """Let the parser read other bytes of the same number, such as a plain target of a link."""
        self.text[start:end] = content
        self.marks.append(Mark(start, end, "hidden"))

    def add_attributes(
        self,
        start: int,
        end: int,
        names: frozenset[str],
        syntax: Syntax,
        title: tuple[int, int] = (0, 0),
    ) -> None:
        """Add the texts of these attributes that are not in `title`, which is text already."""
        found = self.attributes_in(start, end, names, syntax)
        self.attributes += [each for each in found if not title[0] <= each.start < title[1]]

    def attributes_in(
        self, start: int, end: int, names: frozenset[str], syntax: Syntax
    ) -> list[Title]:
        """Return the texts of these attributes between two places; note that others have text."""
        if self.source.find(b"=", start, end) < 0:
            return []
        if has_other_text(self.source, start, end, names):
            self.left.append(("attribute", start))
        return list(attributes(self.source, start, end, names, syntax))

    def finish(self) -> None:
        """Sort what was found."""
        self.marks.sort()
        self.attributes.sort(key=lambda each: each.start)
        self._starts = [each.start for each in self.marks]

    def any_within(self, start: int, end: int) -> bool:
        """Return whether a mark begins in a range."""
        index = bisect_left(self._starts, start)
        return index < len(self._starts) and self._starts[index] < end

    def within(self, start: int, end: int) -> Iterator[Mark]:
        """Yield the marks that begin in a range, in order."""
        for index in range(bisect_left(self._starts, start), len(self.marks)):
            if self.marks[index].start >= end:
                return
            yield self.marks[index]
