"""The cues of subtitles that are translated together, and their places in an output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman_documents.codec import DocumentError
from dragoman_documents.encodings import Decoded
from dragoman_documents.subtitles.cues import Cue, lines_of
from dragoman_documents.subtitles.text import is_long

_ENDS: Final = frozenset(".!?…。！？؟।॥։‽♪♫*])）」』")
_QUOTES: Final = "'\"”’»›)]」』）"
"""What may follow the end mark of a sentence."""
_NEW: Final = re.compile(r"[-–—‐♪♫\[(（*#>]")
"""Beginnings of cues that do not go on with a sentence: speakers, music, sounds."""
_LONGEST_GAP: Final = 1.0
_LONGEST_OVERLAP: Final = 0.1
_MOST_CUES: Final = 6
"""Cues of one sentence: without end marks, as in automatic captions, the sentence is cut here."""


class Unit(NamedTuple):
    """Text of a cue, or one line of a dialogue: `[start:end)` without what is around it."""

    cue: int
    start: int
    end: int
    lead: str = ""
    """Of a line of a dialogue: what is before its text in the line."""
    trail: str = ""
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the segments of a file are."""

    file: Decoded
    text: str
    newline: str
    cues: tuple[Cue, ...]
    groups: tuple[tuple[Unit, ...], ...]


def groups(
    text: str, cues: Sequence[Cue], units: Iterable[Unit], tags: re.Pattern[str]
) -> Iterator[tuple[Unit, ...]]:
    """Yield the units that are translated together: the cues of a sentence."""
    group: list[Unit] = []
    for unit in units:
        if group and not _goes_on(text, cues, group, unit, tags):
            yield tuple(group)
            group = []
        group.append(unit)
    if group:
        yield tuple(group)


def _goes_on(
    text: str, cues: Sequence[Cue], group: Sequence[Unit], unit: Unit, tags: re.Pattern[str]
) -> bool:
    last = group[-1]
    if last.is_line or unit.is_line or len(group) == _MOST_CUES:
        return False
    gap = cues[unit.cue].starts - cues[last.cue].ends
    if not -_LONGEST_OVERLAP <= gap < _LONGEST_GAP:
        return False
    before, after = (tags.sub("", text[each.start : each.end]).strip() for each in (last, unit))
    leads = [text[cues[each.cue].start : each.start] for each in (last, unit)]
    if leads[0] != leads[1] or _is_ended(before) or _NEW.match(after):
        return False
    return is_long(before) and is_long(after)


def _is_ended(text: str) -> bool:
    rest = text.rstrip(_QUOTES)
    return rest[-1:] in _ENDS or not _ENDS.isdisjoint(text[len(rest) :])


class Reading:
    """The units of an output, by those of its source."""

    def __init__(self, layout: Layout, text: str, cues: Sequence[Cue]) -> None:
        self._layout = layout
        self._text = text
        self._cues = cues
        self._line_starts: dict[int, set[int]] = {}
        for group in layout.groups:
            for unit in group:
                self._line_starts.setdefault(unit.cue, set()).add(unit.start - len(unit.lead))

    def groups(self) -> list[tuple[Unit, ...]]:
        """Return them as the source has them. Raises DocumentError if a cue has changed."""
        lines: dict[int, Iterator[tuple[int, int]]] = {}
        found: list[tuple[Unit, ...]] = []
        for group in self._layout.groups:
            if group[0].is_line:
                cue = group[0].cue
                found.append((self._line(group[0], lines.setdefault(cue, self._lines(cue))),))
            else:
                found.append(tuple(map(self._unit, group)))
        return found

    def _unit(self, unit: Unit) -> Unit:
        source, cue = self._layout.cues[unit.cue], self._cues[unit.cue]
        lead = self._layout.text[source.start : unit.start]
        trail = self._layout.text[unit.end : source.end]
        return self._within(unit, cue.start, cue.end, lead, trail)

    def _line(self, unit: Unit, lines: Iterator[tuple[int, int]]) -> Unit:
        """Return the next line of a dialogue that begins and ends as that of the source."""
        start, end = next(lines, (0, 0))
        return self._within(unit, start, end, unit.lead, unit.trail)

    def _within(self, unit: Unit, start: int, end: int, lead: str, trail: str) -> Unit:
        inside = self._text[start:end]
        if not inside.startswith(lead) or not inside.endswith(trail):
            raise DocumentError("corrupt", f"what is around the text of cue {unit.cue + 1} changed")
        return unit._replace(start=start + len(lead), end=max(end - len(trail), start + len(lead)))

    def _lines(self, cue: int) -> Iterator[tuple[int, int]]:
        """Yield the lines of a dialogue that are segments; with a translation, both as one."""
        own = self._cues[cue]
        source = self._layout.cues[cue]
        lines = list(lines_of(self._text, own.start, own.end))
        before = list(lines_of(self._layout.text, source.start, source.end))
        kept = self._line_starts[cue]
        more = len(lines) - len(before)
        place = 0
        for start, end in before:
            first = lines[place] if place < len(lines) else (0, 0)
            place += 1
            if start not in kept:
                continue
            doubled = more > 0 and self._text[slice(*first)] == self._layout.text[start:end]
            if doubled:
                first = (first[0], lines[place][1])
                place, more = place + 1, more - 1
            yield first
