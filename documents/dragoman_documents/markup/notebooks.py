"""Jupyter notebooks: the Markdown cells, put back as they were spelled, in lines or whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from dragoman_documents.catalogs.json.codec import reference
from dragoman_documents.catalogs.json.scanning import String, is_escaped, strings
from dragoman_documents.codec import (
    Codec,
    Extraction,
    Options,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.markup.markdown import codec as markdown
from dragoman_documents.splicing import Replacement, replaced, skeleton

_MARKDOWN: Final = markdown.CODECS["markdown"]
_BETWEEN: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A Markdown cell with the place of its source: a string, or the strings of a list."""

    number: int
    start: int
    end: int
    text: str
    separator: str | None
    """What stands between the lines of a list; None for a single string."""
    content: Extraction

    def segments(self) -> Iterator[Segment]:
        """Yield the segments of the cell with their places in the notebook."""
        for each in self.content.segments:
            yield each._replace(place=f"cell {self.number}, {each.place}")

    def spelled(
        self, texts: Sequence[str | None], options: Options, *, escaped: bool
    ) -> str | None:
        """Return the source with translations as JSON; None if it stays."""
        new = _MARKDOWN.splice(self.text.encode(), self.content, texts, options).decode()
        if new == self.text:
            return None
        lines = [new] if self.separator is None else re.findall(r"[^\n]*\n|[^\n]+", new)
        return (self.separator or "").join(json.dumps(line, ensure_ascii=escaped) for line in lines)


@dataclass(frozen=True, slots=True)
class NotebookLayout:
    """Where the Markdown cells of a notebook are."""

    file: Decoded
    cells: Sequence[NotebookCell]


@dataclass(frozen=True, slots=True)
class Notebook:
    """Notebooks of version 4; code, outputs and raw cells stay as they are."""

    name: str = "ipynb"
    suffixes: frozenset[str] = frozenset({".ipynb"})
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the segments of the Markdown cells. Raises DocumentError."""
        file = decoded(data)
        cells = list(_cells(file.text, options))
        return Extraction(
            segments=tuple(segment for cell in cells for segment in cell.segments()),
            skeleton=skeleton(
                file.text,
                ((cell.start, cell.end) for cell in cells),
                *(cell.content.skeleton for cell in cells),
            ),
            encoding=file.encoding,
            layout=NotebookLayout(file, cells),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the notebook with the translations that Markdown can hold in its cells."""
        layout = layout_of(extraction, NotebookLayout)
        changes: list[Replacement[str]] = []
        first, escaped = 0, is_escaped(layout.file.text)
        for cell in layout.cells:
            behind = first + len(cell.content.segments)
            new = cell.spelled(texts[first:behind], options, escaped=escaped)
            if new is not None:
                changes.append(Replacement(cell.start, cell.end, new))
            first = behind
        return layout.file.encoded(replaced(layout.file.text, changes), reference)


def _cells(document: str, options: Options) -> Iterator[NotebookCell]:
    of_cells = (each for each in strings(document) if each.path[:1] == ("cells",))
    for number, (_, group) in enumerate(groupby(of_cells, lambda each: each.path[:2]), 1):
        found = list(group)
        if any(each.path[2:] == ("cell_type",) and each.value == "markdown" for each in found):
            lines = [each for each in found if each.path[2:3] == ("source",)]
            cell = _cell(number, lines, document, options)
            if cell is not None:
                yield cell


def _cell(
    number: int, lines: Sequence[String], document: str, options: Options
) -> NotebookCell | None:
    """Return a cell; None if its source is neither a string nor a list of strings."""
    if not lines or not _is_source(lines, document):
        return None
    text = "".join(each.value for each in lines)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    content = _MARKDOWN.extract(data, options)
    separator = None if len(lines[0].path) == 3 else _separator(lines, document)
    return NotebookCell(number, lines[0].start, lines[-1].end, text, separator, content)


def _is_source(lines: Sequence[String], document: str) -> bool:
    """Return whether strings are one value, or all of one list, with nothing else between."""
    if len(lines) == 1 and len(lines[0].path) == 3:
        return True
    if any(len(each.path) != 4 for each in lines) or not _opening(lines[0], document)[0]:
        return False
    return all(_BETWEEN.fullmatch(document, a.end, b.start) for a, b in pairwise(lines))


def _separator(lines: Sequence[String], document: str) -> str:
    if len(lines) > 1:
        return document[lines[0].end : lines[1].start]
    return f",{_opening(lines[0], document)[1] or ' '}"


def _opening(first: String, document: str) -> tuple[bool, str]:
    """Return whether a list begins before its first string, and the blanks between."""
    start = first.start
    while document[start - 1] in " \t\r\n":
        start -= 1
    return document[start - 1] == "[", document[start : first.start]


CODECS: Final[Mapping[str, Codec]] = {"ipynb": Notebook()}
