"""Blocks of HTML in Markdown, such as `<details>` and `<p align="center">`: read as HTML is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_documents.codec import Options
from dragoman_documents.markup.html.codec import replacements_of, skeleton_of
from dragoman_documents.markup.html.reader import Page, read_page
from dragoman_documents.splicing import Replacement

_OTHER_SYNTAX: Final = re.compile(r"\{\{|\{%|<[^<>]*\smarkdown(?=[\s=>])")
"""Templates, and elements whose content is Markdown again for some programs."""
_BREAKS: Final = re.compile(r"(?<![ \t])[ \t]*[\r\n]+[ \t]*")
_BEFORE_SYNTAX: Final = re.compile(
    r"[ \t]*(?:\r\n?|\n)[ \t]*"
    r"(?=\${2}|`{3}|~{3}|:{3}|!!!|\?{3}|={3}[!+ ]|///|[{|%]|\[!|\*\[|\+[-=]|;-|-{2}|<<<)"
)
"""A line break in front of a line of other syntax than CommonMark's."""
_ANY_TAG: Final = r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>"""
_ALONE: Final = re.compile(rf"{_ANY_TAG}([ \t]*\r?\n[ \t]*)(?=\S)")
"""A tag alone in its line, such as an image: at its start it makes a block one of HTML."""
_TAG: Final = re.compile(rf"({_ANY_TAG}) ")


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


def page_of(block: Html, source: bytes | bytearray) -> tuple[Page, bool]:
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
    """Yield what translations put into a block: nothing with a blank line, which would end it.

    A copy behind the last line of an open element goes in front of the line's end: it would join
    what follows to the block otherwise. A tag that opens the block stays alone in its line: the
    block would become a paragraph otherwise. No line begins as other syntax does.
    """
    page = block.page
    own = texts[block.first : block.first + len(page.segments)]
    lines = [None if text is None else _BREAKS.sub(" ", text) for text in own]
    done, place, last = 0, block.start, len(page.text.rstrip(" \t\r\n"))
    found = replacements_of(page, lines, options)
    for each in sorted(found, key=lambda each: (each.start, each.end)):
        is_copy = each.start == each.end
        first, behind = (min(at, last) if is_copy else at for at in (each.start, each.end))
        start = place + len(page.text[done:first].encode())
        end = start + len(page.text[first:behind].encode())
        done, place = behind, end
        content: str | None = each.content
        if content != page.text[first:behind]:
            content = _BEFORE_SYNTAX.sub(" ", each.content)
        if not is_copy and not page.text[:first].strip():
            content = _with_tag_alone(content, page.text, first)
        if content is not None:
            yield Replacement(start, end, content.encode())


def _with_tag_alone(content: str, text: str, first: int) -> str | None:
    """Return what begins a block with the break of its source after its first tag.

    None if it begins with another thing than a tag: it would be a paragraph of Markdown.
    """
    source = _ALONE.match(text, first)
    if source is None or _ALONE.match(content):
        return content
    tag = _TAG.match(content)
    return f"{tag[1]}{source[1]}{content[tag.end() :]}" if tag else None
