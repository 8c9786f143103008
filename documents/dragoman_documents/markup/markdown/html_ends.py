"""Where blocks of HTML end: for CommonMark only at a blank line, for others at the end of a tag."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.sites import Dialect, Site

_ENDING: Final[frozenset[Dialect]] = frozenset({"python-markdown", "kramdown", "pandoc", "mdx"})
"""Dialects in which the end of an element ends its block. In the others, which follow CommonMark, a
heading or a list right behind it is a part of the block, and shown as it is spelled."""
_NAMES: Final = (
    "address|article|aside|blockquote|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption"
    "|figure|footer|form|h[1-6]|header|li|main|menu|nav|ol|p|section|summary|table|tbody|td|tfoot"
    "|th|thead|tr|ul"
)
_LIKELY: Final = re.compile(rb"</[A-Za-z1-6]+>[ \t]*\r?\n[ >]*[#*+0-9\-]")
"""What may be one: it is found many times faster."""
_CLOSED: Final = re.compile(
    rf"^[ \t>]*(?=</?(?:{_NAMES})[\s>])[^\n]*</(?:{_NAMES})(?P<end>>)[ \t]*\r?\n"
    r"(?=[ ]{0,3}(?:>[ ]?)*[ ]{0,3}(?:#{1,6}[ \t]|[-*+][ \t]+\S|[0-9]{1,9}[.)][ \t]+\S))"
    r"(?!(?:[ \t]*[^\s][^\n]*\n){1,40}(?:[ ]{4}|\t)[ \t]*<[a-z/!])".encode(),
    re.IGNORECASE | re.MULTILINE,
)
"""The end of an element in front of a heading or a list. Lines that are indented further would
become code."""


def end_html(masks: Masks, code: Sequence[tuple[int, int]], site: Site) -> None:
    """End a block of HTML before a heading or a list, if the site does or if nothing names it.

    The last character of its line becomes a break for the parser, and the break behind it a
    blank line.
    """
    ends = not site.name or site.dialect in _ENDING
    if not ends or _LIKELY.search(masks.source) is None:
        return
    ranges = iter([*sorted(code), (len(masks.text), len(masks.text))])
    start, end = next(ranges)
    for match in _CLOSED.finditer(bytes(masks.text)):
        while end <= match.start() and end < len(masks.text):
            start, end = next(ranges)
        if match.start() < start:
            masks.text[match.start("end")] = ord("\n")
