"""The cells of CSV and TSV files, with their places, and the spelling of new ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from dragoman_documents.codec import DocumentError

MOST_EMPTY: Final = 2_000_000
"""Empty cells that rows shorter than the longest get before a new column; read back, each takes
about 300 bytes of memory."""
_DELIMITERS: Final = ",;\t|"
_SNIFFED: Final = 65_536
"""Characters that are looked at to recognise the delimiter."""
_SNIFFED_ROWS: Final = 50
_PLAIN_ROW: Final = re.compile(r'([^"\r\n]*+)(?:\r\n|\r|\n|\Z)')
_DECLARED: Final = re.compile(r'sep=([^"\r\n])(?:\r\n|\r|\n)')


class CsvCell(NamedTuple):
    """A cell: `[start:end)` with its quotes, and its value without them."""

    start: int
    end: int
    quoted: bool
    value: str


@dataclass(slots=True)
class Row:
    """A row that is not empty: `[start:end)` without its line end, and the values of its cells."""

    values: list[str]
    line: int
    """Number of the line in which it begins."""
    start: int
    end: int
    has_quotes: bool = False
    _cells: list[CsvCell] | None = None

    @property
    def cells(self) -> list[CsvCell]:
        """The cells with their places, found when they are asked for: for few rows they are."""
        if self._cells is None:
            self._cells = list(_plain_cells(self.values, self.start))
        return self._cells


@lru_cache(maxsize=8)
def _pattern(delimiter: str) -> re.Pattern[str]:
    mark = re.escape(delimiter)
    return re.compile(
        rf'(?:"(?P<quoted>(?:[^"]++|"")*+)"(?=[{mark}\r\n]|\Z)|(?P<plain>[^{mark}\r\n]*+))'
        rf"(?P<end>{mark}|\r\n|\r|\n|\Z)"
    )


def head(text: str) -> tuple[int, str | None]:
    """Return where the rows begin, and the delimiter that Excel's line `sep=;` declares."""
    declared = _DECLARED.match(text)
    return (declared.end(), declared[1]) if declared else (0, None)


def rows(text: str, delimiter: str) -> Iterator[Row]:
    """Yield the rows that are not empty, behind a line `sep=;`."""
    place, _ = head(text)
    line = 1 + bool(place)
    while place < len(text):
        plain = _PLAIN_ROW.match(text, place)
        if plain is not None:
            row, behind = Row(plain[1].split(delimiter), line, place, plain.end(1)), plain.end()
        else:
            cells, behind = _cells(text, place, delimiter)
            row = Row([each.value for each in cells], line, place, cells[-1].end, True, cells)
        if len(row.values) > 1 or row.values[0]:
            yield row
        line += 1 if plain else _newlines(text, place, behind)
        place = behind


def _plain_cells(values: Sequence[str], start: int) -> Iterator[CsvCell]:
    """Yield the cells of a row without quotes."""
    for value in values:
        end = start + len(value)
        yield CsvCell(start, end, False, value)
        start = end + 1


def _cells(text: str, place: int, delimiter: str) -> tuple[list[CsvCell], int]:
    """Return the cells of a row, and the place behind its end."""
    match = _pattern(delimiter).match
    cells: list[CsvCell] = []
    while (found := match(text, place)) is not None:
        cells.append(_cell(found))
        place = found.end()
        if found["end"] != delimiter:
            break
    return cells, place


def _cell(found: re.Match[str]) -> CsvCell:
    quoted = found["quoted"]
    if quoted is None:
        return CsvCell(*found.span("plain"), False, found["plain"])
    start, end = found.span("quoted")
    return CsvCell(start - 1, end + 1, True, quoted.replace('""', '"'))


def _newlines(text: str, start: int, end: int) -> int:
    """Return the number of line ends: CRLF, LF and CR alike."""
    cr = text.count("\r", start, end)
    return text.count("\n", start, end) + cr - (text.count("\r\n", start, end) if cr else 0)


def by_column(found: Sequence[Row], width: int) -> list[list[str]]:
    """Return the values of each column, without those that shorter rows lack."""
    columns: list[list[str]] = [[] for _ in range(width)]
    for row in found:
        for column, value in zip(columns, row.values, strict=False):
            column.append(value)
    return columns


def delimiter_of(text: str, default: str) -> str:
    """Return the delimiter: as declared, or with which most rows have as many cells as the first.

    `default` is returned in doubt.
    """
    _, declared = head(text)
    if declared is not None:
        return declared
    sample = text[:_SNIFFED]
    scores = {each: _score(sample, each) for each in dict.fromkeys(default + _DELIMITERS)}
    best = max(scores, key=lambda each: scores[each])
    return best if scores[best] > (0.0, 0) else default


def _score(sample: str, delimiter: str) -> tuple[float, int]:
    counts = Counter(len(row.values) for row in islice(rows(sample, delimiter), _SNIFFED_ROWS))
    if not counts:
        return (0.0, 0)
    (count, times) = counts.most_common(1)[0]
    return (round(times / counts.total(), 1), count) if count > 1 else (0.0, 0)


def spelled(value: str, delimiter: str, cell: CsvCell) -> str:
    """Return a value as a cell: in quotes as its source is, or if it needs them.

    Quotes and blanks at its ends need none if its source has them without.
    """
    held = cell.value
    needed = (
        any(each in value for each in (delimiter, "\r", "\n"))
        or ('"' in value and '"' not in held)
        or (value[:1] == '"' and held[:1] != '"')
        or (value != value.strip() and held == held.strip())
    )
    return '"' + value.replace('"', '""') + '"' if cell.quoted or needed else value


def check_padding(found: Sequence[Row], width: int) -> None:
    """Refuse a table whose rows would get far more empty cells than it has.

    Raises DocumentError (`too_large`).
    """
    empty = sum(max(0, width - len(row.values)) for row in found)
    if empty > MOST_EMPTY:
        raise DocumentError(
            "too_large",
            f"its rows differ so much in length that a new column needs {empty} empty cells; "
            "use --in-place",
        )
