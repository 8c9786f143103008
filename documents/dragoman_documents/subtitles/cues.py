"""The cues of SRT and WebVTT files, with the places of their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from math import nan
from typing import Final, NamedTuple

from dragoman_documents.codec import DocumentError

_TIME: Final = r"(?:[0-9]{1,4}:)?[0-9]{1,2}:[0-9]{1,2}(?:[.,:][0-9]{1,6})?"
_TIMES: Final = re.compile(
    rf"^[ \t]*+(?P<start>{_TIME})[ \t]*+-->[ \t]*+(?P<end>{_TIME})(?![0-9])", re.MULTILINE
)
_SIGN: Final = r"[-+\u2212]?"
_STAMP: Final = (
    r"[0-9]{1,4}[ \t]?[:;][ \t]?[0-9]{1,2}[ \t]?[:;][ \t]?[0-9]{1,2}[:;.,][ \t]?[0-9]{1,6}"
)
_DASHES: Final = r"-=~\u2010-\u2015\u2212"
_ODD: Final = (
    rf"[^\n]*?[0-9][ \t]?(?:[{_DASHES}]{{1,3}}[ \t]?(?:>|&gt;)|[\u2192\u2794])[ \t]{{0,9}}"
    rf"{_SIGN}[0-9]{{1,4}}(?:[ \t]?[:;][ \t]?[0-9]|(?:[.,][0-9]{{1,6}}){{2}})"
    rf"|[ \t]*+{_SIGN}{_STAMP}(?:[^\w\n]{{1,9}}{_SIGN}{_STAMP}|[ \t]*+(?!\S))"
)
"""Times as slips, shifts and other programs write them: with `->` or `;`, negative, one alone."""
_SRT_ODD: Final = re.compile(rf"{_ODD}|(?=[^\n]*?[0-9])[^\n]*?-->")
_VTT_ODD: Final = re.compile(rf"{_ODD}|[^\n]*?-->")
"""A line with an arrow ends a cue of WebVTT in any case."""
_PERHAPS_ODD: Final = re.compile(
    rf"[{_DASHES}][ \t]?(?:>|&gt;)|[\u2192\u2794]|\n[ \t]*+{_SIGN}[0-9]{{1,4}}[ \t]?[:;]"
)
_IN_TIMES: Final = re.compile("[0-9>]")
_CLOCK: Final = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-9]+)(?:[.,:]([0-9]+))?")
_NUMBER: Final = re.compile(r"\s*[#(\[]?[0-9]{1,9}[.:)\]]?\s*")
_LINE: Final = re.compile(r"[^\n]*+\n?")
_BLANK_LINE: Final = re.compile(r"\n ?\n")
"""A line without text; its CR has been made a blank."""
_LINE_BELOW: Final = re.compile(r"[ \t]*+\n")
_WEBVTT: Final = re.compile(r"WEBVTT(?=\s|\Z)")


class Cue(NamedTuple):
    """A cue: its times in seconds, and the range of its text without newlines at the ends.

    The times of a line that has odd ones are NaN.
    """

    starts: float
    ends: float
    start: int
    end: int
    times: int = 0
    """Where the line with the times is."""


def cues_of(text: str, *, vtt: bool) -> list[Cue]:
    """Return the cues in their order. Raises DocumentError (`wrong_type`).

    `text` has newlines as LF. Cues of SRT end at the next cue, those of WebVTT at a blank line.
    A line with odd times begins one too, whose times are not known; players of WebVTT do not show
    it, and it has no text here.
    """
    if vtt and not _WEBVTT.match(text):
        raise DocumentError("wrong_type", "line 1 is not WEBVTT; is it a WebVTT file?")
    found = list(_TIMES.finditer(text))
    if not found and not vtt and text.strip():
        raise DocumentError("wrong_type", "no line has times such as 00:00:01,000 --> 00:00:02,000")
    odd = _odd_lines(text, {match.start() for match in found}, vtt=vtt)
    return list(_cues(text, sorted([*found, *odd], key=re.Match.start), vtt=vtt))


def _odd_lines(text: str, known: AbstractSet[int], *, vtt: bool) -> Iterator[re.Match[str]]:
    """Yield the lines with times that are not those of a cue."""
    odd, start = _VTT_ODD if vtt else _SRT_ODD, 0
    while start >= 0:
        if start not in known and (match := odd.match(text, start)):
            yield match
        end = text.find("\n", start)
        perhaps = _PERHAPS_ODD.search(text, end) if end >= 0 else None
        start = text.rfind("\n", end, perhaps.end()) + 1 if perhaps else -1


def _cues(text: str, found: Sequence[re.Match[str]], *, vtt: bool) -> Iterator[Cue]:
    ends = [_before(text, match.start()) for match in found[1:]]
    for match, limit in zip(found, [*ends, len(text)], strict=False):
        start, end = _payload(text, match.end(), limit, vtt=vtt)
        if match.re is _TIMES:
            times = (_seconds(match["start"]), _seconds(match["end"]))
            yield Cue(*times, start, end, match.start())
        else:
            yield Cue(nan, nan, start, start if vtt else end, match.start())


def _before(text: str, start: int) -> int:
    """Return where the line with a cue's number begins, or else its line with the times."""
    line = text.rfind("\n", 0, max(start - 1, 0)) + 1
    return line if start and _NUMBER.fullmatch(text, line, start) else start


def changes_cues(new: str, text: str, end: int, *, vtt: bool) -> bool:
    """Return whether new text of a cue, in place of what ends at `end`, would be read as a cue.

    A line with times begins a cue, and a line with a number right before such a line is part of it.
    """
    odd = _VTT_ODD if vtt else _SRT_ODD
    lines = new.split("\n")
    if any(_TIMES.match(line) or odd.match(line) for line in lines if _IN_TIMES.search(line)):
        return True
    if not _NUMBER.fullmatch(lines[-1]) or (below := _LINE_BELOW.match(text, end)) is None:
        return False
    return bool(_TIMES.match(text, below.end()) or odd.match(text, below.end()))


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
