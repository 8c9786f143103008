"""The ids of a source, written into its translation, so that links to its headings still work.

They are insertions at places of an output that was verified without them, and are verified again
(`verifying.py`): removing them gives the same bytes, and the segments read back the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from dragoman_documents.codec import Codec, Extraction, Options
from dragoman_documents.markup.anchors.by_text import definitions
from dragoman_documents.markup.anchors.headings import Heading, element_ids, headings, ids_of
from dragoman_documents.markup.anchors.pages import Insertion, inserted, layouts
from dragoman_documents.markup.anchors.sluggers import SLUGGERS, WITH_TERMS
from dragoman_documents.markup.anchors.verifying import Unverified, verify
from dragoman_documents.markup.markdown.codec import MarkdownLayout
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.putting_back import Spliced

_MOSTLY: Final = 3
"""Headings with an id from which a page of no known site shows the syntax of its renderer."""
_KRAMDOWN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")
_PLAIN: Final = re.compile(r"[^\s{}\"'<>=\\`]+")
"""An id that a list of attributes holds as it is."""
_MARKS: Final = re.compile(rb"(?:\#{1,6}[ \t]+)?")
_BEHIND: Final = frozenset(
    {"python-markdown", "goldmark", WITH_TERMS, "kramdown-gfm", "kramdown", "pandoc"}
)
"""Sluggers whose renderers read a list of attributes behind closing number signs."""


def with_ids(
    codec: Codec, output: Spliced, before: Extraction, options: Options, anchors: Anchors
) -> bytes:
    """Return an output with the ids of its source, as it is if it needs none. Raises Unverified.

    `before` is the extraction of the source.
    """
    if anchors.ids == "none" or options.bilingual or not layouts(before):
        return output.data
    after = layouts(output.again)
    work = _Pinning(layouts(before), after, codec.name == "mdx", anchors)
    insertions = work.insertions()
    if not any(insertions):
        return output.data
    made = inserted(output.again, insertions)
    verify(codec, made, output, insertions, options)
    return made


@dataclass(slots=True)
class _Pinning:
    """The headings of a source and of its output, page by page."""

    before: Sequence[MarkdownLayout]
    after: Sequence[MarkdownLayout]
    mdx: bool
    anchors: Anchors

    def insertions(self) -> list[list[Insertion]]:
        """Return what is inserted into each page: nothing if no id has changed."""
        if len(self.before) != len(self.after):
            raise Unverified("the output has other cells")
        if self.anchors.guesses:
            self.anchors = self._guessed()
        old = [self._headings(each) for each in self.before]
        new = [self._headings(each) for each in self.after]
        wanted, found = self._ids(old), self._ids(new)
        if [len(each) for each in wanted] != [len(each) for each in found]:
            raise Unverified("the output has other headings")
        made = [[] for _ in new] if wanted == found else self._all(new, wanted, found)
        if SLUGGERS[self.anchors.slugger].by_text:
            before = zip(self.before, old, wanted, strict=True)
            after = zip(self.after, new, found, strict=True)
            for page, was, now in zip(made, before, after, strict=True):
                page.extend(definitions(was, now))
        return made

    def _ids(self, pages: Sequence[Sequence[Heading]]) -> list[list[str | None]]:
        """Return the ids of the headings of each page, which are unique in all of them."""
        everything = [each for page in pages for each in page]
        ids = iter(ids_of(everything, SLUGGERS[self.anchors.slugger]))
        return [
            [made for each, made in zip(page, ids, strict=False) if not each.is_term]
            for page in pages
        ]

    def _headings(self, layout: MarkdownLayout) -> list[Heading]:
        reads_lists = self.anchors.ids != "html"
        slugger = SLUGGERS[self.anchors.slugger]
        return headings(layout, slugger, mdx=self.mdx, reads_lists=reads_lists)

    def _guessed(self) -> Anchors:
        """Return the syntax of a page that gives ids to most of its headings."""
        slugger = SLUGGERS[self.anchors.slugger]
        found = [
            (each, layout)
            for layout in self.before
            for each in headings(layout, slugger, mdx=self.mdx, reads_lists=True)
        ]
        given = [(each, layout) for each, layout in found if each.explicit is not None]
        if len(given) < _MOSTLY or 2 * len(given) <= len(found):
            return self.anchors
        heading, layout = given[0]
        raw = layout.source[slice(*heading.attributes)] if heading.attributes else b""
        if raw.startswith(b"{/*"):
            style = "{/* #%s */}" if b"#" in raw else "{/*%s*/}"
            return self.anchors._replace(ids="comment", comment=style)
        return self.anchors._replace(ids="attributes") if raw.startswith(b"{") else self.anchors

    def _all(
        self,
        new: Sequence[Sequence[Heading]],
        wanted: Sequence[Sequence[str | None]],
        found: Sequence[Sequence[str | None]],
    ) -> list[list[Insertion]]:
        taken = frozenset[str]()
        if self.anchors.ids == "html":
            taken = taken.union(*(element_ids(each.source) for each in self.after))
        made: list[list[Insertion]] = []
        for page, layout, *ids in zip(new, self.after, wanted, found, strict=True):
            made.append([])
            pinned = (each for each in page if not each.is_term)
            for heading, old, now in zip(pinned, *ids, strict=True):
                if heading.explicit is not None or not old:
                    continue
                if self.anchors.ids == "html" and (old == now or old in taken):
                    continue
                insertion = self._insertion(heading, old, layout.source)
                if insertion is not None:
                    made[-1].append(insertion)
        return made

    def _insertion(self, heading: Heading, name: str, source: bytes) -> Insertion | None:
        """Return how a heading gets an id; None if it cannot get this one."""
        ids, slugger = self.anchors.ids, self.anchors.slugger
        if ids == "attributes" and slugger.startswith("kramdown") and not _KRAMDOWN.fullmatch(name):
            ids = "html"
        if ids == "html":
            return Insertion(heading.start, f'<a id="{escape(name)}"></a>'.encode())
        if not _PLAIN.fullmatch(name):
            return None
        if ids == "label":
            return _label(heading, name, source)
        if ids == "comment":
            return Insertion(heading.end, f" {self.anchors.comment % name}".encode())
        is_python = slugger.startswith(("pymdownx", "python-markdown"))
        # magiclink takes `#1` for an issue
        written = f'id="{name}"' if is_python and name[0].isdigit() else f"#{name}"
        if heading.attributes is not None:
            start, end = heading.attributes
            inside = source[start : end - 1].rstrip()
            return Insertion(start + len(inside), f" {written}".encode())
        place = heading.behind if is_python or slugger in _BEHIND else heading.end
        return Insertion(place, f" {{{written}}}".encode())


def _label(heading: Heading, name: str, source: bytes) -> Insertion | None:
    """Return MyST's label above a heading that is in no list or quote."""
    line = source.rfind(b"\n", 0, heading.start) + 1
    if not _MARKS.fullmatch(source, line, heading.start):
        return None
    newline = "\r\n" if source[line - 2 : line] == b"\r\n" else "\n"
    return Insertion(line, f"({name})={newline}".encode())
