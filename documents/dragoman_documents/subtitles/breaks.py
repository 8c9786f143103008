"""A sentence cut into cues and lines: as its source, where the text did not change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman_documents.shares import Boundaries
from dragoman_documents.subtitles.text import breaks_of, cut, longest, width, wrapped

_MARK: Final = "\0"
_LINE_BREAK: Final = re.compile(r"(?<![ \t])[ \t]*+(?:\n[ \t]*+)+")

Place = tuple[int, int]
"""Where a break is, and what it stands for."""


class Parted(NamedTuple):
    """The text of a cue, with newlines."""

    text: str
    breaks: tuple[Place, ...] | None
    """The places of its line breaks in the source, if they are still there."""


def cut_again(
    text: str, spelled: str, whole: str, sources: Sequence[str], *, in_lines: bool
) -> list[Parted] | None:
    """Return a translation in as many cues as its source; None if it has too few words.

    `spelled` is the source with its newlines and our tags, `whole` its segment's text, `sources`
    are the texts of the cues. Where translation and source begin or end alike the breaks stay;
    else they are at the clause or word nearest to their share. `in_lines`: each cue has as many
    lines as its source.
    """
    breaks = [tuple(match.span() for match in _LINE_BREAK.finditer(each)) for each in sources]
    parts = _as_in_source(text, spelled, whole, [len(each) for each in breaks])
    if parts is None:
        shares = [max(1, width(source)) for source in sources]
        parted = cut(text, shares, _MARK, nested=False)
        if parted is None:
            return None
        parts = [_Part(each) for each in parted.split(_MARK)]
    if in_lines:
        lines = list(map(_in_same_lines, parts, sources, breaks))
        return [each for each in lines if each] if all(lines) else None
    return list(map(_in_lines, parts, sources, breaks))


class _Part(NamedTuple):
    text: str
    lines: tuple[str, ...] = ()
    """Those of the source, if all of its breaks are still there."""


def _as_in_source(text: str, spelled: str, whole: str, counts: Sequence[int]) -> list[_Part] | None:
    """Return a text in the cues of its source; None if a cue's end is no longer there.

    `counts` are the line breaks in each cue.
    """
    places = breaks_of(spelled)
    if len(places) != sum(counts) + len(counts) - 1:
        return None
    boundaries = Boundaries(text, whole)
    kept = (boundaries.same(start) for start, _ in places)
    there: list[Place | None] = [
        None if at is None else (at, at + end - start)
        for at, (start, end) in zip(kept, places, strict=True)
    ]
    there.append((len(text), len(text)))
    parts: list[_Part] = []
    first = done = 0
    for count in counts:
        inner, last = there[done : done + count], there[done + count]
        if last is None or not _is_shown(text[first : last[0]]):
            return None
        parts.append(_Part(text[first : last[0]], _lines(text, first, inner, last[0])))
        first, done = last[1], done + count + 1
    return parts


def _lines(text: str, first: int, breaks: Sequence[Place | None], end: int) -> tuple[str, ...]:
    """Return the lines of a part of a text; none if a break is not known."""
    lines: list[str] = []
    for each in breaks:
        if each is None:
            return ()
        lines.append(text[first : each[0]])
        first = each[1]
    lines.append(text[first:end])
    return tuple(lines) if all(map(_is_shown, lines)) else ()


def _is_shown(line: str) -> bool:
    """Return whether a line is one: those of blanks are left out when lines are joined."""
    return bool(line.strip(" \t"))


def _in_lines(part: _Part, source: str, breaks: tuple[Place, ...]) -> Parted:
    """Return a cue in lines: those of its source if they are known and short enough."""
    old = source.split("\n")
    if part.lines and max(map(width, part.lines)) <= longest(old):
        return Parted("\n".join(part.lines), breaks)
    return Parted(wrapped(part.text, old), None)


def _in_same_lines(part: _Part, source: str, breaks: tuple[Place, ...]) -> Parted | None:
    """Return a cue in as many lines as its source; None if it has too few words."""
    if part.lines:
        return Parted("\n".join(part.lines), breaks)
    shares = [max(1, width(line)) for line in _LINE_BREAK.split(source)]
    parted = cut(part.text, shares, "\n", nested=True)
    return None if parted is None else Parted(parted, breaks)
