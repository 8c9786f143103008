"""HTML that is text for XML, in CDATA or escaped: its tags are inline codes all the same.

`See <a href="%1$s">the site</a>` in CDATA is one text to XML. A program gives it to a reader of
HTML, so that its tags must stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    composed,
    rendered,
)
from dragoman_documents.xml.inline import Mixed
from dragoman_documents.xml.slots import Inner, XmlWriter, shown
from dragoman_text.inline import InlineTag, find_tags, pairs, pieces


class Marked(NamedTuple):
    """The text of an element with codes for its tags of HTML, and how a translation is written."""

    text: str
    codes: tuple[InlineCode, ...]
    writer: XmlWriter


@dataclass(frozen=True, slots=True)
class _HtmlWriter:
    """Writes a translation with its tags of HTML as text."""

    codes: tuple[InlineCode, ...]
    """By number what stands in the text that `writer` knows: HTML, or a tag of its codes."""
    html: str
    """The tags of HTML, whatever their order."""
    writer: XmlWriter

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the content of the element. Raises ValueError if the tags do not fit."""
        return self.writer.written(rendered(text, self.codes, str), inner)

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the tags and what else is fixed."""
        return f"{self.writer.fixed(ranges)}\0{self.html}"


def with_html(found: Mixed) -> Marked:
    """Return a text with its tags of HTML as codes; as it is if they cross other markup."""
    tags = find_tags(found.text)
    if all(each.numbered for each in tags):
        return Marked(*found)
    paired, alone = pairs(tags)
    if any(each.numbered and each.form != "empty" for each in alone):
        return Marked(*found)
    closings = {opening.start: closing for opening, closing in paired}
    text, codes = composed(_pieces(found.text, closings))
    ends = {closing.start for _, closing in paired}
    begun = [each for each in tags if each.start not in ends]
    names = (_name(tag, code, found.codes) for tag, code in zip(begun, codes, strict=True))
    html = "\0".join(sorted(each.text for each in tags if not each.numbered))
    return Marked(text, tuple(names), _HtmlWriter(codes, html, found.writer))


def _pieces(text: str, closings: dict[int, InlineTag]) -> Iterator[Piece]:
    ends = {each.start for each in closings.values()}
    for piece in pieces(text):
        if isinstance(piece, str):
            yield piece
        elif piece.start in ends:
            yield ClosingCode()
        elif (closing := closings.get(piece.start)) is not None:
            yield OpeningCode(piece.text, closing.text)
        else:
            yield SingleCode(piece.text)


def _name(tag: InlineTag, code: InlineCode, own: Sequence[InlineCode]) -> InlineCode:
    """Return what a code is in the document."""
    if tag.numbered:
        return own[int(tag.name[1:]) - 1]
    return code._replace(opening=shown(code.opening))
