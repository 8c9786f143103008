"""What is put in front of each further part of a large file, so that it is a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from dragoman_documents.codec import Codec, DocumentError, Options, Segment
from dragoman_documents.parts.cutting import lines_in
from dragoman_documents.tables.scanning import Row, delimiter_of, head, rows
from dragoman_documents.values import is_text

TABLES: Final = {"csv": ",", "tsv": "\t"}
"""Formats of tables with their usual delimiter."""
_UNEVEN = "its columns with text differ between its parts; name the columns with --column"


@dataclass(frozen=True, slots=True)
class Head:
    """Text in front of a part, with its segments and its output."""

    text: str
    lines: int
    segments: tuple[Segment, ...]
    output: bytes

    @property
    def texts(self) -> list[str | None]:
        """Return translations that are the sources."""
        return [segment.text for segment in self.segments]

    def without(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Return the segments of a part without those of its head. Raises DocumentError."""
        behind = len(self.segments)
        if tuple(segments[:behind]) != self.segments:
            raise DocumentError("wrong_type", _UNEVEN)
        return segments[behind:]

    def stripped(self, output: bytes) -> bytes:
        """Return the output of a part without that of its head. Raises DocumentError."""
        if not output.startswith(self.output):
            raise DocumentError("wrong_type", _UNEVEN)
        return output[len(self.output) :]


def head_of(codec: Codec, options: Options, first: str, mark: bytes, encoding: str) -> Head:
    """Return the head of the further parts of a file whose first part has this text."""
    text = ""
    if codec.name == "vtt":
        text = "WEBVTT\n\n"
    elif codec.name in TABLES:
        text = "".join(_rows_of_columns(first, TABLES[codec.name]))
    if not text:
        return Head("", 0, (), mark)
    data = mark + text.encode(encoding)
    found = codec.extract(data, options)
    texts = [segment.text for segment in found.segments]
    output = codec.splice(data, found, texts, options)
    return Head(text, lines_in(text, codec.name), found.segments, output)


def _rows_of_columns(text: str, default: str) -> Iterator[str]:
    """Yield the first two rows of a table, and the first with text in each column.

    They have as many cells as the longest row of the first part.
    """
    start, _ = head(text)
    yield text[:start]
    known: set[int] = set()
    width = 0
    found = rows(text, delimiter_of(text, default))
    row = next(found, None)
    for number in count():
        if row is None:
            return
        after = next(found, None)
        filled = {index for index, cell in enumerate(row.cells) if number and is_text(cell.value)}
        if number < 2 or filled - known or len(row.cells) > width:
            yield _spelled(text, row, after)
        known |= filled
        width = max(width, len(row.cells))
        row = after


def _spelled(text: str, row: Row, after: Row | None) -> str:
    """Return a row as it stands, with its line end."""
    whole = text[row.cells[0].start : after.cells[0].start if after else len(text)]
    return whole if whole.endswith(("\n", "\r")) else whole + "\n"
