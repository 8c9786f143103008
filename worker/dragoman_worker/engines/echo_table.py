r"""The table of answers that the echo engine gives in mode ``table`` (`engine.echo.table`).

Tab-separated UTF-8, one source per line: the source, the target tag, then the answer of the first
attempt, of the second, and so on. `\t`, `\n`, `\r` and `\\` stand for a tab, a newline, a carriage
return and a backslash. A column without text is an empty answer. Empty lines are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from dragoman_connections.settings import SettingsError
from dragoman_schemas.languages import UnknownLanguage, normalise

MOST_BYTES: Final = 256 * 1024 * 1024
"""Size of a table. Short sentences take five times as much memory: 94 MB for 19 MB of them."""
LONGEST_LINE: Final = 4 * 1024 * 1024
"""Bytes of a line: a source and some answers of 128 KiB each, all of it escaped."""

_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)
_MEANINGS: Final = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
_LINE_ENDS: Final = "\r\n"
_LONE_RETURN: Final = (
    "a carriage return inside the line; write \\r, or end the lines with LF or CRLF"
)


class _Row(NamedTuple):
    key: tuple[str, str]
    answers: tuple[str, ...]


class EchoTable:
    """Answers by source and target tag; both are compared exactly, but for blanks around them."""

    def __init__(self, answers: dict[tuple[str, str], tuple[str, ...]], digest: str) -> None:
        self._answers = answers
        self.digest = digest
        """SHA-256 of the file: another table gives other answers."""

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, source: str, target_lang: str, attempt: int) -> str | None:
        """Return the answer of an attempt, counted from 1; after the last one the last again.

        None if the source is not listed for the target.
        """
        answers = self._answers.get((source.strip(), target_lang))
        return None if answers is None else answers[min(attempt, len(answers)) - 1]


def load_table(path: Path) -> EchoTable:
    """Read a table. Raises SettingsError that names the setting, the file and the line."""
    answers: dict[tuple[str, str], tuple[str, ...]] = {}
    lines: dict[tuple[str, str], int] = {}
    digest = sha256()
    for number, line in _lines(path):
        digest.update(line)
        try:
            row = _row(line)
        except ValueError as error:
            raise _refused(path, f"line {number}: {error}") from None
        if row is None:
            continue
        if row.key in answers:
            why = f"line {number}: line {lines[row.key]} has the same source and target"
            raise _refused(path, why)
        answers[row.key], lines[row.key] = row.answers, number
    if not answers:
        raise _refused(path, "no line lists a source; give source, target tag and answer")
    return EchoTable(answers, digest.hexdigest())


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each line, in bounded memory. Raises SettingsError."""
    number = size = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                number, size = number + 1, size + len(line)
                if len(line) > LONGEST_LINE and b"\r" in line:
                    raise _refused(path, f"line {number}: {_LONE_RETURN}")
                if len(line) > LONGEST_LINE:
                    raise _refused(path, f"line {number} has more than {LONGEST_LINE:,} bytes")
                if size > MOST_BYTES:
                    raise _refused(path, f"line {number} is beyond {MOST_BYTES:,} bytes")
                yield number, line
    except OSError as error:
        raise _refused(path, f"{error.strerror or error}; give a readable file") from None


def _row(line: bytes) -> _Row | None:
    """Return what a line lists, None for an empty line. Raises ValueError."""
    try:
        text = line.decode("utf-8-sig").rstrip(_LINE_ENDS)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
    if not text.strip():
        return None
    if "\r" in text:
        raise ValueError(_LONE_RETURN)
    source, *others = text.split("\t")
    if len(others) < 2:
        raise ValueError("give source, target tag and at least one answer, separated by tabs")
    tag, *answers = others
    try:
        target = normalise(tag.strip())
    except UnknownLanguage as error:
        raise ValueError(f"column 2: {error}") from None
    plain = _plain(source, 1).strip()
    if not plain:
        raise ValueError("column 1: the source is empty")
    listed = tuple(_plain(text, column) for column, text in enumerate(answers, 3))
    return _Row((plain, target), listed)


def _plain(text: str, column: int) -> str:
    """Return the text without escapes. Raises ValueError."""

    def meaning(escape: re.Match[str]) -> str:
        if escape[1] not in _MEANINGS:
            raise ValueError(
                f"column {column}: {escape[0]!r} is no escape; write backslashes as \\\\, and use "
                "\\t, \\n and \\r"
            )
        return _MEANINGS[escape[1]]

    return _ESCAPE.sub(meaning, text) if "\\" in text else text


def _refused(path: Path, why: str) -> SettingsError:
    return SettingsError(f"engine.echo.table: {path}: {why}")
