"""Gate `loop`: the answer repeats itself, and the source does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.prose import prose
from dragoman_text.verdicts import Candidate

LEAST_REPEATS: Final = 8
LONGEST_UNIT: Final = 60
"""A unit of 1-60 characters, 8 times in a row: never in 48,853 human sentences."""

_LEAST_IN_SOURCE: Final = 4
_MORE_THAN_SOURCE: Final = 3
"""A repetition in the source may be this many times as long in the translation: "ha ha ha" and
separator lines are written shorter or longer in other languages."""

_LEAST_GROUPS: Final = 8
_MOST_REPEATED: Final = 0.2
_MORE_REPEATED: Final = 0.15
"""More than 20 % of the groups of words occurred before, and 15 points more than in the source:
0.004 % of human sentences."""

_WORDS_IN_GROUP: Final = 4
_CHARACTERS_IN_GROUP: Final = 8
_LETTERS_IN_GROUP: Final = 12
"""Of Thai, Lao, Tibetan, Khmer and Burmese, whose words have as many letters as others."""
_OF_LETTERS: Final = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Loop:
    """A `unit` repeated `times` without interruption."""

    unit: str
    times: int

    @property
    def length(self) -> int:
        """Length of the repetition in characters."""
        return len(self.unit) * self.times


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer repeats a unit, or its words, more than the source does."""
    source, target = _without_layout(candidate.source), _without_layout(candidate.target)
    found = longest_loop(target)
    if found is not None and not _source_repeats(source, found):
        return Defect(f"The answer repeats {listed([found.unit])} {found.times} times in a row.")
    share = repeated_share(prose(target))
    if share > _MOST_REPEATED and share > repeated_share(prose(source), 1) + _MORE_REPEATED:
        return Defect(f"{share:.0%} of the answer repeats words that came before.")
    return None


def _without_layout(text: str) -> str:
    """Return the text with single blanks: columns of help texts are aligned by many."""
    return " ".join(text.split())


def _source_repeats(source: str, found: Loop) -> bool:
    repeated = longest_loop(source.replace("…", "." * _LEAST_IN_SOURCE), _LEAST_IN_SOURCE)
    return repeated is not None and found.length <= _MORE_THAN_SOURCE * repeated.length


def longest_loop(text: str, least: int = LEAST_REPEATS) -> Loop | None:
    """Return the longest run of a unit of 1-60 characters repeated at least `least` times.

    A run that begins inside its unit counts one repeat less.
    """
    return max(_loops(text, least), key=lambda loop: loop.length, default=None)


def _loops(text: str, least: int) -> Iterator[Loop]:
    """Yield the runs around short probes; each is sought in the 60 positions behind it.

    Linear in the text: the obvious pattern ``(.{1,60})\\1{7}`` takes thirty times as long.
    """
    probe = least // 2
    at = 0
    while at < len(text):
        loop, end = _loop_at(text, at, probe, least)
        if loop is not None:
            yield loop
        at = max(at + probe, end)


def _loop_at(text: str, at: int, probe: int, least: int) -> tuple[Loop | None, int]:
    """Return the run around the probe at `at`, and where the run ends."""
    sought, last = text[at : at + probe], at + probe + LONGEST_UNIT
    again = text.find(sought, at + 1, last)
    while again >= 0:
        unit = text[at:again]
        before, end = _repeats_before(text, at, unit), _end_of_repeats(text, again, unit)
        times = before + (end - at) // len(unit)
        if times >= least - 1:
            return Loop(unit, times), end
        again = text.find(sought, again + 1, last)
    return None, 0


def _end_of_repeats(text: str, at: int, unit: str) -> int:
    while text.startswith(unit, at):
        at += len(unit)
    return at


def _repeats_before(text: str, at: int, unit: str) -> int:
    """Return how many times the unit ends at `at`; a longer run was found by an earlier probe."""
    times = 0
    while times < LEAST_REPEATS and text.endswith(unit, 0, at - times * len(unit)):
        times += 1
    return times


def repeated_share(text: str, least: int = _LEAST_GROUPS) -> float:
    """Return the share, 0-1, of groups of four words that occurred before in the text.

    In texts without blanks, the share of groups of eight characters, or of twelve letters. 0 for
    a text with fewer groups than `least`; a source has few words where the answer has many
    characters.
    """
    words = _WORD.findall(text)
    # Scripts without blanks between words have three bytes per letter.
    if 2 * _CHARACTERS_IN_GROUP * len(words) < len(text) and len(text.encode()) > 2 * len(text):
        size = _LETTERS_IN_GROUP if _OF_LETTERS.search(text) else _CHARACTERS_IN_GROUP
        return _share(text, size, 2 * least)
    return _share(words, _WORDS_IN_GROUP, least)


def _share(parts: Sequence[str], size: int, least: int) -> float:
    total = len(parts) - size + 1
    if total < least:
        return 0.0
    groups = {tuple(parts[at : at + size]) for at in range(total)}
    return 1.0 - len(groups) / total
