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


class SubtitleUnit(NamedTuple):
    """Text of a cue, or of an utterance in it: `[start:end)` without what is around it."""

    cue: int
    start: int
    end: int
    lead: str = ""
    """Of an utterance: what is before its text in its first line."""
    trail: str = ""
    lines: int = 0
    """Of an utterance: the lines that it has, and that its translation has."""


@dataclass(frozen=True, slots=True)
class SubtitleLayout:
    """Where the segments of a file are."""

    file: Decoded
    text: str
    newline: str
    cues: tuple[Cue, ...]
    groups: tuple[tuple[SubtitleUnit, ...], ...]


def groups(
    text: str, cues: Sequence[Cue], units: Iterable[SubtitleUnit], tags: re.Pattern[str]
) -> Iterator[tuple[SubtitleUnit, ...]]:
    """Yield the units that are translated together: the cues of a sentence."""
    group: list[SubtitleUnit] = []
    for unit in units:
        if group and not _goes_on(text, cues, group, unit, tags):
            yield tuple(group)
            group = []
        group.append(unit)
    if group:
        yield tuple(group)


def _goes_on(
    text: str,
    cues: Sequence[Cue],
    group: Sequence[SubtitleUnit],
    unit: SubtitleUnit,
    tags: re.Pattern[str],
) -> bool:
    last = group[-1]
    if last.lines or unit.lines or len(group) == _MOST_CUES:
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


class SubtitleReading:
    """The units of an output, by those of its source."""

    def __init__(self, layout: SubtitleLayout, text: str, cues: Sequence[Cue]) -> None:
        self._layout = layout
        self._text = text
        self._cues = cues
        self._line_counts: dict[int, dict[int, int]] = {}
        for group in layout.groups:
            for unit in group:
                counts = self._line_counts.setdefault(unit.cue, {})
                counts[unit.start - len(unit.lead)] = unit.lines

    def groups(self) -> list[tuple[SubtitleUnit, ...]]:
        """Return them as the source has them. Raises DocumentError if a cue has changed."""
        lines: dict[int, Iterator[tuple[int, int]]] = {}
        found: list[tuple[SubtitleUnit, ...]] = []
        for group in self._layout.groups:
            if group[0].lines:
                cue = group[0].cue
                held = lines.setdefault(cue, self._utterances(cue))
                found.append((self._utterance(group[0], held),))
            else:
                found.append(tuple(map(self._unit, group)))
        return found

    def _unit(self, unit: SubtitleUnit) -> SubtitleUnit:
        source, cue = self._layout.cues[unit.cue], self._cues[unit.cue]
        lead = self._layout.text[source.start : unit.start]
        trail = self._layout.text[unit.end : source.end]
        return self._within(unit, cue.start, cue.end, lead, trail)

    def _utterance(self, unit: SubtitleUnit, held: Iterator[tuple[int, int]]) -> SubtitleUnit:
        """Return the next utterance, which begins and ends as that of the source."""
        start, end = next(held, (0, 0))
        return self._within(unit, start, end, unit.lead, unit.trail)

    def _within(
        self, unit: SubtitleUnit, start: int, end: int, lead: str, trail: str
    ) -> SubtitleUnit:
        inside = self._text[start:end]
        if not inside.startswith(lead) or not inside.endswith(trail):
            raise DocumentError("corrupt", f"what is around the text of cue {unit.cue + 1} changed")
        return unit._replace(start=start + len(lead), end=max(end - len(trail), start + len(lead)))

    def _utterances(self, cue: int) -> Iterator[tuple[int, int]]:
        """Yield the utterances of a cue that are segments; with a translation, both as one."""
        own, source = self._cues[cue], self._layout.cues[cue]
        lines = list(lines_of(self._text, own.start, own.end))
        before = list(lines_of(self._layout.text, source.start, source.end))
        counts = self._line_counts[cue]
        left = sum(counts.values())
        place = index = 0
        while index < len(before):
            count = counts.get(before[index][0], 0)
            following = before[index + count : index + count + 1]
            left -= count
            more = len(lines) - place - len(before) + index
            index, place, first = index + (count or 1), place + (count or 1), place
            is_doubled = more > left or not self._is_same(lines[place : place + 1], following)
            if count and more > 0 and is_doubled:
                place += count
            if count:
                yield _as_one(lines[first:place])

    def _is_same(self, new: Sequence[tuple[int, int]], old: Sequence[tuple[int, int]]) -> bool:
        """Return whether lines of the output are those of the source."""
        one, other = _as_one(new), _as_one(old)
        return self._text[slice(*one)] == self._layout.text[slice(*other)]


def _as_one(lines: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return (lines[0][0], lines[-1][1]) if lines else (0, 0)
