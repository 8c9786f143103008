"""What is put in front of a part of a large file, so that it is a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from dragoman_documents.codec import Codec, DocumentError, Extraction, Options, Segment
from dragoman_documents.parts.cutting import lines_in
from dragoman_documents.tables.columns import has_header, has_words
from dragoman_documents.tables.csv import has_same_columns
from dragoman_documents.tables.scanning import Row, delimiter_of, rows
from dragoman_documents.values import is_text

TABLES: Final = {"csv": ",", "tsv": "\t"}
"""Formats of tables with their usual delimiter."""
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_UNEVEN = "its columns with text differ between its parts; name the columns with --column"


@dataclass(frozen=True, slots=True)
class Head:
    """Text in front of a part, with its segments and its output."""

    text: str
    lines: int
    found: Extraction
    output: bytes
    own: str = ""
    """What the first part of the file begins with and the head holds: the header of a table."""
    opening: bytes = b""
    """The output of that, which the output of the file begins with."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return its segments, with which each part begins."""
        return self.found.segments

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

    def check(self, found: Extraction) -> None:
        """Refuse a part of a table that gets other columns. Raises DocumentError."""
        if not has_same_columns(self.found, found):
            raise DocumentError("wrong_type", _UNEVEN)

    def stripped(self, output: bytes) -> bytes:
        """Return the output of a part without that of its head. Raises DocumentError."""
        if not output.startswith(self.output):
            raise DocumentError("wrong_type", _UNEVEN)
        return output[len(self.output) :]


@dataclass(frozen=True, slots=True)
class Heads:
    """Makes the heads of the parts of a file."""

    codec: Codec
    options: Options
    mark: bytes
    encoding: str

    def of_table(self, texts: Iterable[str]) -> Head | None:
        """Return the head of all parts of a table, whose columns the whole table decides."""
        default = TABLES.get(self.codec.name)
        if default is None:
            return None
        table = _Table(default)
        for text in texts:
            table.add(text)
        found = self._head("".join(table.rows))
        return self._opened(found, table) if table.has_header(self.options) else found

    def of_others(self) -> Head:
        """Return the head of the further parts of a file that is no table."""
        return self._head("WEBVTT\n\n" if self.codec.name == "vtt" else "")

    def _head(self, text: str) -> Head:
        if not text:
            return Head("", 0, Extraction((), ""), self.mark)
        data = self.mark + text.encode(self.encoding)
        found = self.codec.extract(data, self.options)
        texts = [segment.text for segment in found.segments]
        output = self.codec.splice(data, found, texts, self.options)
        return Head(text, lines_in(text, self.codec.name), found, output, "", self.mark)

    def _opened(self, head: Head, table: _Table) -> Head:
        """Return the head of a table whose first row is a header, which is written once."""
        output = head.output[len(self.mark) :].decode(self.encoding)
        second = next(islice(rows(output, table.delimiter), 1, None), None)
        opening = output if second is None else output[: second.start]
        opening_bytes = self.mark + opening.encode(self.encoding)
        return replace(head, own=table.rows[0], opening=opening_bytes)


@dataclass(slots=True)
class _Table:
    """The rows by which the columns of a table are known.

    The first two, the longest, the first with text and with anything in each column, and the first
    whose first cell may be a text that is its own key.
    """

    default: str
    delimiter: str = ""
    rows: list[str] = field(default_factory=list)
    """As they stand, with their line ends; the first with all that is before the second."""
    _first: list[Row] = field(default_factory=list)
    _unknown: tuple[int, ...] = ()
    """Columns without text so far."""
    _empty: tuple[int, ...] = ()
    _has_words: bool = False
    _width: int = 0

    def add(self, text: str) -> None:
        """Look at the rows of a further text of the table."""
        self.delimiter = self.delimiter or delimiter_of(text, self.default)
        for row in rows(text, self.delimiter):
            if len(self._first) <= 1 or len(row.values) > self._width or self._has_news(row):
                self._add(text, row)

    def has_header(self, options: Options) -> bool:
        """Return whether the first row is a header."""
        return has_header(self._first, options)

    def _has_news(self, row: Row) -> bool:
        values = row.values
        return (
            any(is_text(values[each]) for each in self._unknown if each < len(values))
            or any(values[each] for each in self._empty if each < len(values))
            or (not self._has_words and has_words(values[0]))
        )

    def _add(self, text: str, row: Row) -> None:
        if len(self._first) <= 1:
            self._first.append(row)
        self._widen(len(row.values))
        if len(self._first) > 1:
            self._note(row.values)
        if not self.rows:
            place = next((each.start for each in islice(rows(text, self.delimiter), 1, 2)), None)
            self.rows.append(text[:place])
        else:
            self.rows.append(_spelled(text, row))
        if not self.rows[-1].endswith(("\n", "\r")):
            self.rows[-1] += "\n"

    def _widen(self, width: int) -> None:
        more = tuple(range(self._width, width))
        self._unknown, self._empty = (*self._unknown, *more), (*self._empty, *more)
        self._width = max(self._width, width)

    def _note(self, values: Sequence[str]) -> None:
        count = len(values)
        self._unknown = tuple(i for i in self._unknown if i >= count or not is_text(values[i]))
        self._empty = tuple(i for i in self._empty if i >= count or not values[i])
        self._has_words = self._has_words or has_words(values[0])


def _spelled(text: str, row: Row) -> str:
    """Return a row as it stands, with its line end."""
    end = _LINE_END.match(text, row.end)
    return text[row.start : end.end() if end else row.end]
