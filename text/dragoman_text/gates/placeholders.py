"""Gate `placeholders`: protected literals and placeholders occur as often as in the source.

The source's own placeholders are counted in the answer. Searching both texts for placeholders and
comparing would disagree in 2 % of human translations of user interfaces: ``%s`` before a letter
is no placeholder by itself, but it is one if the source has it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from dragoman_text.gates.defect import Defect, listed
from dragoman_text.spans import count_words, find_spans, possible_placeholders
from dragoman_text.verdicts import Candidate

_KINDS: Final = frozenset({"printf", "mustache", "template", "brace"})
_POSITION: Final = re.compile(r"\A%[0-9]{1,2}\$")


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if a protected literal or a placeholder is missing or too frequent."""
    source, target = candidate.source, candidate.target
    expected = _placeholders(source)
    counted = _counts(target, expected)
    # Literals overlap with each other and with placeholders, so each is counted by itself.
    apart = {"", *candidate.words}
    literals = [each for each in candidate.protected if each not in apart]
    expected.update({each: source.count(each) for each in literals})
    counted.update({each: target.count(each) for each in literals})
    words, found = (count_words(text, candidate.words) for text in (source, target))
    missing = [each for each, times in expected.items() if counted[each] < times]
    # An ending may follow a word in the translation: Finnish has "Kafkan".
    missing += [each for each, times in words.items() if target.count(each) < times]
    if missing:
        return Defect(f"The answer lacks {listed(missing)}.")
    repeated = [each for each, times in expected.items() if counted[each] > times]
    repeated += [each for each, times in words.items() if found[each] > times]
    return Defect(f"The answer repeats {listed(repeated)}.") if repeated else None


def _placeholders(source: str) -> Counter[str]:
    """Return how often each placeholder occurs in the source, without positions (`%1$s`)."""
    if not any(mark in source for mark in "%{"):
        return Counter()
    certain = {
        _without_position(source[span.start : span.end])
        for span in find_spans(source)
        if span.kind in _KINDS
    }
    return _counts(source, certain)


def _counts(text: str, wanted: Iterable[str]) -> Counter[str]:
    wanted = set(wanted)
    if not wanted:
        return Counter()
    found = map(_without_position, possible_placeholders(text))
    return Counter(each for each in found if each in wanted)


def _without_position(placeholder: str) -> str:
    return _POSITION.sub("%", placeholder)
