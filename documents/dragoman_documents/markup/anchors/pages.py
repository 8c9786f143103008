"""The Markdown of a document with headings: of a page whole, of a notebook cell by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman_documents.codec import Extraction
from dragoman_documents.markup.markdown.codec import MarkdownLayout
from dragoman_documents.markup.notebooks import NotebookCell, NotebookLayout
from dragoman_documents.references import reference
from dragoman_documents.splicing import Replacement, replaced

_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_CHARACTER: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


class Insertion(NamedTuple):
    """Bytes to be put into a page at a place of its UTF-8."""

    place: int
    content: bytes


def layouts(extraction: Extraction) -> list[MarkdownLayout]:
    """Return the pages of a document, none if its format has no headings with ids."""
    layout = extraction.layout
    if isinstance(layout, MarkdownLayout):
        return [layout]
    if isinstance(layout, NotebookLayout):
        found = (cell.content.layout for cell in layout.cells)
        return [each for each in found if isinstance(each, MarkdownLayout)]
    return []


def inserted(extraction: Extraction, insertions: Sequence[Sequence[Insertion]]) -> bytes:
    """Return a document with insertions into each of its pages."""
    layout = extraction.layout
    if isinstance(layout, NotebookLayout):
        changes = [
            change
            for cell, some in zip(layout.cells, insertions, strict=True)
            if some
            for change in _into_cell(cell, layout.file.text, some)
        ]
        return layout.file.encoded(replaced(layout.file.text, changes), reference)
    assert isinstance(layout, MarkdownLayout)  # noqa: S101  `layouts` was not empty
    changed = _with(layout.source, insertions[0])
    return layout.file.encoded(changed.decode(), reference)


def _with(source: bytes, insertions: Sequence[Insertion]) -> bytes:
    return replaced(source, [Replacement(place, place, content) for place, content in insertions])


def _into_cell(
    cell: NotebookCell, document: str, some: Sequence[Insertion]
) -> list[Replacement[str]]:
    """Return the insertions into the strings of a cell, in which each is spelled as in JSON."""
    data = cell.text.encode()
    wanted = [(len(data[:place].decode()), content.decode()) for place, content in some]
    places = _places(document, cell, [offset for offset, _ in wanted])
    return [
        Replacement(places[offset], places[offset], json.dumps(content)[1:-1])
        for offset, content in wanted
    ]


def _places(document: str, cell: NotebookCell, offsets: Sequence[int]) -> dict[int, int]:
    """Return where characters of a cell are in the document."""
    wanted, found, count = set(offsets), dict[int, int](), 0
    for string in _STRING.finditer(document, cell.start, cell.end):
        for each in _CHARACTER.finditer(document, string.start(1), string.end(1)):
            if count in wanted:
                found[count] = each.start()
            count += 1
    return found
