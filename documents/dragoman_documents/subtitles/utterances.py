"""The lines of a cue that are texts of their own: speakers, sounds, lines of songs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

_PERHAPS: Final = re.compile(r"\n[ \t]*(?:[-–—‐\[(（【<{]|[^\n:]{2,41}:)|[])）】>}][ \t]*\n|[♪♫]")
_DASH: Final = re.compile(r"[-–—‐]")
_SOUND: Final = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|（[^（）]*）|【[^【】]*】")
_BRACKET: Final = re.compile(r"[\[【♪♫]")
_SPEAKER: Final = re.compile(r"[^\s:\d][^:]{1,40}:(?!\S)")
_SONG: Final = re.compile(r"[♪♫]")


def may_have_utterances(text: str, start: int, end: int) -> bool:
    """Return whether a cue may have lines that stay lines; most cues need no closer look."""
    return text.find("\n", start, end) >= 0 and _PERHAPS.search(text, start, end) is not None


def utterances(lines: Sequence[str]) -> list[int]:
    """Return how many lines each utterance of a cue has; nothing if its lines are one text.

    `lines` have no tags. An utterance begins with a dash where two lines do, with a speaker in
    capitals (`MAN: Come in!`) or a bracket, or behind a line that is a sound (`(door opens)`).
    Lines of a song stay lines.
    """
    in_dialogue = sum(_DASH.match(line) is not None for line in lines) > 1
    starts = [0, *_starts(lines, in_dialogue=in_dialogue), len(lines)]
    counts = [after - before for before, after in pairwise(starts)]
    return counts if len(counts) > 1 or any(map(_SONG.search, lines)) else []


def _starts(lines: Sequence[str], *, in_dialogue: bool) -> Iterator[int]:
    for index in range(1, len(lines)):
        line = lines[index]
        begins = _BRACKET.match(line) or (in_dialogue and _DASH.match(line)) or _is_spoken(line)
        if begins or _SOUND.fullmatch(line) or _SOUND.fullmatch(lines[index - 1]):
            yield index


def _is_spoken(line: str) -> bool:
    """Return whether a line begins with a speaker's name in capitals."""
    name = _SPEAKER.match(line)
    return name is not None and name[0].isupper()
