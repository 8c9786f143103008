"""Blocks of HTML in Markdown, such as `<details>` and `<p align="center">`: read as HTML is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_producer.documents.codecs.codec import Options
from dragoman_producer.documents.codecs.html_codec import replacements_of, skeleton_of
from dragoman_producer.documents.codecs.html_reader import Page, read_page
from dragoman_producer.documents.codecs.splicing import Replacement

_OTHER_SYNTAX: Final = re.compile(r"\{\{|\{%|<[^<>]*\smarkdown(?=[\s=>])")
"""Templates, and elements whose content is Markdown again for some programs."""
_BREAKS: Final = re.compile(r"[ \t]*[\r\n]+[ \t]*")


class Html(NamedTuple):
    """A block of HTML at `[start:end)` of the source."""

    start: int
    end: int
    quoted: bool
    """Whether its lines begin with the marks of a quote."""


class HtmlSlots(NamedTuple):
    """The segments of a block of HTML."""

    start: int
    end: int
    page: Page
    first: int
    """Index of its first segment in the document."""


def page_of(block: Html, source: bytes) -> tuple[Page, bool]:
    """Return the segments of a block, and whether they can be translated."""
    text = source[block.start : block.end].decode()
    page = read_page(text, xml=False)
    return page, not block.quoted and not _OTHER_SYNTAX.search(text)


def skeleton(block: HtmlSlots) -> str:
    """Return the digest of what stays in a block."""
    return skeleton_of(block.page)


def replacements(
    block: HtmlSlots, texts: Sequence[str | None], options: Options
) -> Iterator[Replacement[bytes]]:
    """Yield what translations put into a block: nothing with a blank line, which would end it."""
    page = block.page
    own = texts[block.first : block.first + len(page.segments)]
    lines = [None if text is None else _BREAKS.sub(" ", text) for text in own]
    done, place = 0, block.start
    found = replacements_of(page, lines, options)
    for each in sorted(found, key=lambda each: (each.start, each.end)):
        start = place + len(page.text[done : each.start].encode())
        end = start + len(page.text[each.start : each.end].encode())
        done, place = each.end, end
        yield Replacement(start, end, each.content.encode())
