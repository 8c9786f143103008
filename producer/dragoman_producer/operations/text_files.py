"""Lines of text files in bounded memory, with errors that name the file and the line."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LONGEST_LINE: Final = 1024 * 1024
"""Bytes of a line of UTF-8, or characters of a line of UTF-16."""

_UTF_8: Final = "save the file as UTF-8"
LONE_RETURNS: Final = "its lines end in CR only; save the file with LF or CRLF line ends"
"""Why a file is refused whose lines end as on old Macs."""
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


class InvalidFile(ValueError):
    """A file cannot be read; the message names it, the line and what to do."""

    def __init__(self, path: Path, line: int | None, why: str) -> None:
        super().__init__(f"{path}: {why}" if line is None else f"{path}, line {line:,}: {why}")


def unreadable(path: Path, error: OSError) -> InvalidFile:
    """Return the error of a file that cannot be opened or read."""
    return InvalidFile(path, None, f"{error.strerror or error}; give a readable file")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, with its line end; UTF-8, or UTF-16 with a mark.

    Raises InvalidFile.
    """
    try:
        with path.open("rb") as file:
            head = file.peek(4)[:4]
            if head.startswith(_UTF_32):
                raise InvalidFile(path, 1, f"the text is UTF-32; {_UTF_8}")
            yield from (_utf_16 if head.startswith(_UTF_16) else _utf_8)(path, file)
    except OSError as error:
        raise unreadable(path, error) from None


def _utf_8(path: Path, file: io.BufferedReader) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise _too_long(path, number, lone_returns=b"\r" in line)
        if b"\0" in line:
            why = "a zero byte: this is binary, or UTF-16 without a byte order mark"
            raise InvalidFile(path, number, f"{why}; {_UTF_8}")
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte {error.start + 1} (0x{line[error.start]:02X}) is not UTF-8"
            raise InvalidFile(path, number, f"{byte}; {_UTF_8}") from None


def _utf_16(path: Path, file: io.BufferedReader) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with io.TextIOWrapper(file, encoding="utf-16", newline="") as text:
            while line := text.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise _too_long(path, number, lone_returns="\r" in line)
                yield number, line
    except UnicodeError:
        raise InvalidFile(path, number + 1, f"the text is not valid UTF-16; {_UTF_8}") from None


def _too_long(path: Path, number: int, *, lone_returns: bool) -> InvalidFile:
    if lone_returns:
        return InvalidFile(path, number, LONE_RETURNS)
    return InvalidFile(path, number, f"longer than {LONGEST_LINE:,}; is this a text file?")
