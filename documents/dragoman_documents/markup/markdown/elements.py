"""Elements of HTML with Markdown in them: `<div markdown="1">`."""

from __future__ import annotations

import re
from typing import Final

from dragoman_documents.markup.markdown.lines import Lines
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.sites import Site

_VOID_ALONE: Final = re.compile(rb"<(?:img|br|input|wbr)\b[^<>]*>[ \t]*\Z", re.IGNORECASE)


class Elements(Lines):
    """Hides the tags of elements whose content is Markdown."""

    def __init__(self, masks: Masks, site: Site) -> None:
        super().__init__(masks, site)
        self._elements: list[tuple[bytes, bool]] = []
        """Elements with Markdown in them that are open, and others of the same name in them."""

    def _markdown(self, match: re.Match[bytes]) -> None:
        """Hide the tag of an element whose content is Markdown."""
        self._elements.append((match["markdown"][1:].split(maxsplit=1)[0], True))
        self._hide(match, "markdown")

    def _line(self, match: re.Match[bytes]) -> None:
        """Hide the tags of an element of one line but for its text."""
        self._hide_but(*match.span("line"), match.span("inner"))

    def _tag(self, match: re.Match[bytes]) -> None:
        """Hide what begins a block of HTML in an element whose content is Markdown.

        That is the tag that ends it, and an image alone in its line, which begins a paragraph.
        """
        if not self._elements:
            return
        tag, name = match["tag"].rstrip(), match["name"]
        is_same = name == self._elements[-1][0]
        if tag == b"</" + name + b">" and is_same:
            if self._elements.pop()[1]:
                self._hide(match, "tag")
        elif is_same and tag[1:2] != b"/" and b"</" + name not in tag:
            self._elements.append((name, False))
        elif _VOID_ALONE.match(tag) and self._begins(match.start()):
            start = match.start("tag")
            self._masks.mark(start, start + len(tag), "line")
            self._add_attributes(start, start + len(tag))

    def _begins(self, start: int) -> bool:
        """Return whether nothing stands above a line but a blank or a hidden one."""
        text = self._masks.text
        above = text[text.rfind(b"\n", 0, max(0, start - 1)) + 1 : start].strip(b" \t>\r\n")
        return not above or above.startswith((b"#", b","))
