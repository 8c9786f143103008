"""What the readers of other syntax share: lines of a document, hidden in its masks."""

from __future__ import annotations

import re

from dragoman_documents.codec import RemarkKind
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.sites import Site


class Lines:
    """Hides lines of one document."""

    def __init__(self, masks: Masks, site: Site) -> None:
        self._masks = masks
        self._text = masks.source
        self._site = site
        self._missing: set[bytes] = set()

    def _hide(self, match: re.Match[bytes], group: str) -> None:
        self._masks.line(*match.span(group))

    def _hide_but(self, start: int, end: int, title: tuple[int, int], head: bytes = b"#") -> None:
        """Hide a line but for a title in it."""
        first, last = title
        if not self._text[first:last].strip() or first < start + len(head) + 1:
            if head == b"#":
                self._masks.line(start, end)
            else:
                self._masks.head(start, end, head)
            return
        self._masks.head(start, first, head)
        self._masks.text[last:end] = b" " * (end - last)
        self._masks.title(first, last)

    def _add_attributes(self, start: int, end: int, title: tuple[int, int] = (0, 0)) -> None:
        self._masks.add_attributes(start, end, self._site.attributes, "references", title)

    def _left(self, kind: RemarkKind, place: int) -> None:
        self._masks.left.append((kind, place))

    def _closing(self, pattern: re.Pattern[bytes], start: int) -> re.Match[bytes] | None:
        """Return what closes a region; what is not there is looked for once."""
        if pattern.pattern in self._missing:
            return None
        found = pattern.search(self._text, start)
        if found is None:
            self._missing.add(pattern.pattern)
        return found

    def _begins_paragraph(self, match: re.Match[bytes]) -> bool:
        """Return whether a line begins a paragraph, or continues lines of comments."""
        if match["prefix"].strip(b" \t>"):
            return True
        end = max(0, match.start() - 1)
        above = self._text[self._text.rfind(b"\n", 0, end) + 1 : end].strip(b" \t>\r")
        return not above or above.startswith(b"%")


def behind_line(text: bytes | bytearray, place: int) -> int:
    """Return the place behind the line of a place."""
    found = text.find(b"\n", place)
    return found + 1 if found >= 0 else len(text)
