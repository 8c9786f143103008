"""The cues of SRT and WebVTT files, with the places of their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman_documents.codec import DocumentError

_TIME: Final = r"(?:[0-9]{1,4}:)?[0-9]{1,2}:[0-9]{1,2}(?:[.,:][0-9]{1,6})?"
_TIMES: Final = re.compile(
    rf"^[ \t]*+(?P<start>{_TIME})[ \t]*+-->[ \t]*+(?P<end>{_TIME})(?![0-9])", re.MULTILINE
)
_CLOCK: Final = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-9]+)(?:[.,:]([0-9]+))?")
_NUMBER: Final = re.compile(r"\s*[0-9]{1,9}\s*")
_LINE: Final = re.compile(r"[^\n]*+\n?")
_BLANK_LINE: Final = re.compile(r"\n ?\n")
"""A line without text; its CR has been made a blank."""
_CUE_BELOW: Final = re.compile(rf"[ \t]*+\n{_TIMES.pattern[1:]}")
"""The end of the last line of a text that the next cue follows without a number."""
_WEBVTT: Final = re.compile(r"WEBVTT(?=\s|\Z)")


class Cue(NamedTuple):
    """A cue: its times in seconds, and the range of its text without newlines at the ends."""

    starts: float
    ends: float
    start: int
    end: int


def cues_of(text: str, *, vtt: bool) -> list[Cue]:
    """Return the cues in their order. Raises DocumentError (`wrong_type`).

    `text` has newlines as LF. Cues of SRT end at the next cue, those of WebVTT at a blank line.
    """
    if vtt and not _WEBVTT.match(text):
        raise DocumentError("wrong_type", "line 1 is not WEBVTT; is it a WebVTT file?")
    found = list(_TIMES.finditer(text))
    if not found and not vtt and text.strip():
        raise DocumentError("wrong_type", "no line has times such as 00:00:01,000 --> 00:00:02,000")
    if not found:
        return []
    ends = [_before(text, match.start()) for match in found[1:]]
    limits = [*ends, len(text)]
    return [
        Cue(
            _seconds(match["start"]),
            _seconds(match["end"]),
            *_payload(text, match.end(), limit, vtt=vtt),
        )
        for match, limit in zip(found, limits, strict=True)
    ]


def _before(text: str, start: int) -> int:
    """Return where the line with a cue's number begins, or else its line with the times."""
    line = text.rfind("\n", 0, max(start - 1, 0)) + 1
    return line if start and _NUMBER.fullmatch(text, line, start) else start


def changes_cues(new: str, text: str, end: int) -> bool:
    """Return whether new text of a cue, in place of what ends at `end`, would be read as a cue.

    A line with times begins a cue, and a line with a number right before such a line is part of it.
    """
    if _TIMES.search(new):
        return True
    last = new.rpartition("\n")[2]
    return _NUMBER.fullmatch(last) is not None and _CUE_BELOW.match(text, end) is not None


def _payload(text: str, place: int, limit: int, *, vtt: bool) -> tuple[int, int]:
    """Return the range of the lines behind the line with the times, up to a limit."""
    start = text.find("\n", place, limit) + 1
    if not start:
        return limit, limit
    if vtt:
        blank = _BLANK_LINE.search(text, start - 1, limit)
        limit = max(blank.start(), start) if blank else limit
    body = text[start:limit]
    stripped = body.strip()
    if not stripped:
        return start, start
    lead = len(body) - len(body.lstrip())
    return start + lead, start + lead + len(stripped)


def _seconds(time: str) -> float:
    found = _CLOCK.fullmatch(time)
    if found is None:
        raise ValueError("not a time")
    hours, minutes, seconds, fraction = found.groups("0")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def lines_of(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the lines of a part of a text, without blanks at their ends."""
    for match in _LINE.finditer(text, start, end):
        if body := match[0].strip():
            lead = match.start() + match[0].index(body[0])
            yield lead, lead + len(body)
