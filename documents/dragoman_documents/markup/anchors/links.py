"""The links with fragments of a page, and the ids that such links can lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman_documents.codec import Codec, Options
from dragoman_documents.encodings import decoded
from dragoman_documents.markup.anchors.headings import element_ids, headings, ids_of
from dragoman_documents.markup.anchors.pages import layouts
from dragoman_documents.markup.anchors.sluggers import SLUGGERS
from dragoman_documents.markup.markdown.codec import MarkdownLayout
from dragoman_documents.markup.markdown.events import MarkdownBlock, link_targets, parsed
from dragoman_documents.markup.markdown.front_matter import front_matter
from dragoman_documents.markup.markdown.masking import masked
from dragoman_documents.markup.sites import Anchors, site

_LIKELY: Final = re.compile(rb"\]\([^()\s]*#|\]:[ \t]*\S*#|href\s*=\s*[\"']?[^\"'\s>]*#")
_HREF: Final = re.compile(r"\bhref\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{[\"'`]([^\"'`]*)[\"'`]\})")
_GIVEN: Final = re.compile(
    rb"\{[^{}\r\n]*?#([^\s{}#.=]+)[^{}\r\n]*\}|^\(([^\s()]+)\)=", re.MULTILINE
)


class Link(NamedTuple):
    """A link with a fragment."""

    line: int
    target: str


class LinkedPage(NamedTuple):
    """What is checked of a page."""

    links: list[Link]
    ids: frozenset[str] | None
    """None if they were not looked for."""


def linked_page(
    codec: Codec, data: bytes, options: Options, anchors: Anchors, *, wants_ids: bool
) -> LinkedPage:
    """Return the links of a page, and its ids if they are wanted or it has links.

    Raises DocumentError.
    """
    if not wants_ids and not _LIKELY.search(data):
        return LinkedPage([], None)
    mdx = codec.name == "mdx"
    if codec.name == "ipynb":
        pages = layouts(codec.extract(data, options))
    else:
        pages = [_layout(data, options, mdx=mdx)]
    links = [link for page in pages for link in _links(page)]
    return LinkedPage(links, _ids(pages, anchors, mdx=mdx))


def _layout(data: bytes, options: Options, *, mdx: bool) -> MarkdownLayout:
    """Return the headings of a page without its segments."""
    file = decoded(data)
    source = file.text.encode()
    front = front_matter(source, options.site)
    masks = masked(source, front.behind if front else 0, site(options.site), mdx=mdx)
    found = [
        each
        for each in parsed(bytes(masks.text))
        if isinstance(each, MarkdownBlock)
        and each.level
        and each.tokens[0].start not in masks.titles
    ]
    return MarkdownLayout(file, source, (), (), found, masks)


def _ids(pages: list[MarkdownLayout], anchors: Anchors, *, mdx: bool) -> frozenset[str]:
    slugger = SLUGGERS[anchors.slugger]
    reads_lists = anchors.ids != "html" or anchors.guesses
    found = [
        heading
        for page in pages
        for heading in headings(page, slugger, mdx=mdx, reads_lists=reads_lists)
    ]
    made = frozenset(each for each in ids_of(found, slugger) if each is not None)
    return made.union(*(element_ids(page.source) | _given(page.source) for page in pages))


def _given(source: bytes) -> frozenset[str]:
    """Return the ids in lists of attributes, also of other blocks, and in labels."""
    found = (each[1] or each[2] for each in _GIVEN.finditer(source))
    return frozenset(each.decode("utf-8", "replace") for each in found)


def _links(page: MarkdownLayout) -> Iterator[Link]:
    """Yield the links with fragments in order of their places."""
    if b"#" not in page.source:
        return
    found = [*link_targets(bytes(page.masks.text)), *_of_components(page)]
    line, counted = 1, 0
    for place, raw, is_html in sorted(found):
        for each in _targets(raw, is_html=is_html):
            line += page.source.count(b"\n", counted, place)
            counted = place
            yield Link(line, each)


def _of_components(page: MarkdownLayout) -> Iterator[tuple[int, str, bool]]:
    """Yield the tags of components, which the parser does not see."""
    for mark in page.masks.marks:
        if page.source.startswith(b"<", mark.start):
            yield mark.start, page.source[mark.start : mark.end].decode("utf-8", "replace"), True


def _targets(raw: str, *, is_html: bool) -> Iterator[str]:
    """Yield the targets with a fragment: what was found is one, or HTML."""
    if not is_html:
        if "#" in raw:
            yield raw
        return
    for each in _HREF.finditer(raw):
        target = each[1] or each[2] or each[3] or ""
        if "#" in target:
            yield target
