"""Places at which the text of a large file may be cut in two."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from dragoman_documents.tables.scanning import delimiter_of, rows

_TAIL: Final = 256 * 1024
"""Characters at the end of a text in which the last cue is looked for."""
_CUE: Final = re.compile(r"(?<=\n)[ \t]*+\r?\n(?=(?:[^\n]*+\n)?[^\n]*?-->)")
"""A blank line before a cue, with or without its number."""
_OPEN: Final = re.compile(r'"(?:[^"]++|"")*+"?\Z')
"""A quoted cell whose end has not been read."""
_PLACE: Final = re.compile(r"\A(?:line|cues?) ([0-9]+)(?:-([0-9]+))?")


def boundary(text: str, format_name: str) -> int:
    """Return the last place at which the text may be cut, 0 if there is none; linear."""
    return PARTED[format_name](text)


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
    """Return where the last row begins that may not have been read to its end."""
    start = 0
    for row in rows(text, delimiter_of(text, default)):
        start = row.cells[0].start
        if any(_is_open(text, cell.start, quoted=cell.quoted) for cell in row.cells):
            break
    return start


def _is_open(text: str, start: int, *, quoted: bool) -> bool:
    return not quoted and text.startswith('"', start) and _OPEN.match(text, start) is not None


PARTED: Final[Mapping[str, Callable[[str], int]]] = {
    "txt": _behind_blank_line,
    "csv": lambda text: _before_row(text, ","),
    "tsv": lambda text: _before_row(text, "\t"),
    "jsonl": _behind_line,
    "srt": _before_cue,
    "vtt": _before_cue,
}
"""Per format that is read in parts the function for `boundary`."""


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
