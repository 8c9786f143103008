"""Places at which the text of a large file may be cut in two."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from dragoman_documents.tables.scanning import CsvCell, delimiter_of, head, rows

_TAIL: Final = 256 * 1024
"""Characters at the end of a text in which the last cue is looked for."""
_CUE: Final = re.compile(r"(?<=\n)[ \t]*+\r?\n(?=(?:[^\n]*+\n)?[^\n]*?-->)")
"""A blank line before a cue, with or without its number."""
_OPEN: Final = re.compile(r'"(?:[^"]++|"")*+"?\Z')
"""A quoted cell whose end has not been read."""
_PLACE: Final = re.compile(r"\A(?:line|cues?) ([0-9]+)(?:-([0-9]+))?")


def boundary(text: str, format_name: str) -> int:
    """Return the last place at which the text may be cut, 0 if there is none; linear."""
    return PARTED[format_name].boundary(text)


def units(text: str, format_name: str) -> int:
    """Return the number of segments that a text has at most, as far as marks in it tell."""
    return sum(map(text.count, PARTED[format_name].marks))


def behind_units(text: str, format_name: str, most: int) -> int | None:
    """Return the place behind that many units; None if the text has fewer."""
    if units(text, format_name) < most:
        return None
    marks = "|".join(map(re.escape, PARTED[format_name].marks))
    return next(islice(re.finditer(marks, text), most - 1, None)).end()


def _behind_line(text: str) -> int:
    return text.rfind("\n") + 1


def _behind_blank_line(text: str) -> int:
    """Return the place behind the last blank line; without any, behind the last line."""
    found = max(text.rfind(ends) + len(ends) for ends in ("\n\n", "\n\r\n", "\r\r"))
    if found > len("\n\r\n"):
        return found
    return _behind_line(text) or text.rfind("\r", 0, len(text) - 1) + 1


def _before_cue(text: str) -> int:
    found = [match.end() for match in _CUE.finditer(text, max(0, len(text) - _TAIL))]
    return found[-1] if found else 0


def _before_row(text: str, default: str) -> int:
    """Return where the last row begins that may not have been read to its end, if not the first."""
    if '"' not in text:
        body = text.rstrip("\r\n")
        place = max(body.rfind("\n"), body.rfind("\r")) + 1
        return place if text[head(text)[0] : place].strip("\r\n") else 0
    starts: list[int] = []
    for row in rows(text, delimiter_of(text, default)):
        starts = [*starts[:1], row.start]
        if row.has_quotes and any(_is_open(text, each) for each in row.cells):
            break
    return starts[1] if len(starts) > 1 else 0


def _is_open(text: str, cell: CsvCell) -> bool:
    if cell.quoted or not text.startswith('"', cell.start):
        return False
    return _OPEN.match(text, cell.start) is not None


class Parting(NamedTuple):
    """How a format is read in parts."""

    boundary: Callable[[str], int]
    marks: tuple[str, ...]
    """What stands behind or around each segment."""


_IN_TABLES: Final = (",", ";", "\t", "|", "\n", "\r")
PARTED: Final[Mapping[str, Parting]] = {
    "txt": Parting(_behind_blank_line, ("\n", "\r")),
    "csv": Parting(lambda text: _before_row(text, ","), _IN_TABLES),
    "tsv": Parting(lambda text: _before_row(text, "\t"), _IN_TABLES),
    "jsonl": Parting(_behind_line, ('"', "\n")),
    "srt": Parting(_before_cue, ("-->",)),
    "vtt": Parting(_before_cue, ("-->",)),
}
"""The formats that are read in parts."""


def lines_in(text: str, format_name: str) -> int:
    """Return the number of lines of a text, of cues in subtitles, by which places are counted."""
    if format_name in {"srt", "vtt"}:
        return text.count("-->")
    newlines = text.count("\n")
    if format_name == "jsonl" or "\r" not in text:
        return newlines
    return newlines + text.count("\r") - text.count("\r\n")


def place_after(place: str, lines: int) -> str:
    """Return a place such as `line 3` or `cues 2-4` that many lines or cues later."""

    def shifted(match: re.Match[str]) -> str:
        kind = match[0].split()[0]
        numbers = "-".join(str(int(each) + lines) for each in match.groups() if each)
        return f"{kind} {numbers}"

    return _PLACE.sub(shifted, place)
