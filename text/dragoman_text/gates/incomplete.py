"""Gate `incomplete`: the end of the source is missing in the answer.

Half an answer is mostly longer than what `length` fails, as human translations may be that short.
A second sign decides: the last sentence has lost its end mark, there are fewer sentences, or a
bracket stays open. Short texts vary more: labels lose full stops and half of their words rightly,
so there the same signs are slight. `detection.py` and `false_alarms.py` in benchmarks/quality have
the rates.
"""

from __future__ import annotations

import math
from typing import Final

from dragoman_text.gates import length, sentence_ends
from dragoman_text.gates.defect import Defect
from dragoman_text.gates.prose import weighed_letters
from dragoman_text.verdicts import Candidate

_UNFINISHED_BELOW: Final = 0.78
"""Ratio to the usual length for an answer that has no end mark or closes no bracket."""
_SPREAD: Final = 2.5
"""How far human translations of a source of one character are below the usual length; the share
falls with the root of the length: a quarter at 100 characters."""
_FEWER_BELOW: Final = 0.65
"""Ratio for an answer of fewer sentences: translators join them, and hardly shorten the text."""
_LEAST_LETTERS: Final = 24
_BRACKETS: Final = ("()", "[]", "【】")
_QUOTES: Final = ("「」", "『』", "«»")
_WIDE: Final = str.maketrans("（）［］", "()[]")
_OF_SOURCE: Final = ("“”", "„“", "«»", "「」", "『』")


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer is short and a sign shows that its end is missing.

    Rests where the item has a limit of characters below the usual length.
    """
    ratio, usual = length.ratio(candidate)
    if ratio >= _UNFINISHED_BELOW or weighed_letters(candidate.source) < _LEAST_LETTERS:
        return None
    if candidate.max_chars is not None and candidate.max_chars < usual:
        return None
    sign = _sign(candidate, ratio)
    if sign is None:
        return None
    sure = 1.0 - _SPREAD / math.sqrt(len(candidate.source.strip()))
    slight = ratio >= sure or sentence_ends.are_left_out(candidate.target_lang)
    return Defect(f"{sign}, and has {ratio:.2f} times the usual length.", slight=slight)


def looks_unfinished(candidate: Candidate) -> bool:
    """Return whether the answer is short for a source with an end mark, which it does not have."""
    return _lost_mark(candidate) and length.ratio(candidate)[0] < _UNFINISHED_BELOW


def _sign(candidate: Candidate, ratio: float) -> str | None:
    source, target = candidate.source, candidate.target
    if _lost_mark(candidate):
        return "The answer has no end mark, as the source has"
    brackets = _BRACKETS if _quotes_on(source) else (*_BRACKETS, *_QUOTES)
    for bracket in brackets:
        if _open(target.translate(_WIDE), bracket) and not _open(source.translate(_WIDE), bracket):
            return f"The answer does not close {bracket[0]}"
    if ratio < _FEWER_BELOW and _fewer_sentences(source, target):
        return "The answer has fewer sentences"
    return None


def _lost_mark(candidate: Candidate) -> bool:
    """Return whether the source has an end mark and the answer none, and no quotation to close."""
    return (
        sentence_ends.ends_sentence(candidate.source)
        and not sentence_ends.ends_with_mark(candidate.target)
        and sentence_ends.are_written(candidate.target_lang)
        and not sentence_ends.closes_quotation(candidate.source, candidate.target)
    )


def _fewer_sentences(source: str, target: str) -> bool:
    """Return whether sentences are missing; a single one may have become a heading."""
    return sentence_ends.count(source) > max(1, sentence_ends.count(target))


def _quotes_on(source: str) -> bool:
    """Return whether a quotation of the source goes on behind it, with whichever marks."""
    return source.count('"') % 2 == 1 or any(_open(source, each) for each in _OF_SOURCE)


def _open(text: str, bracket: str) -> bool:
    return text.count(bracket[0]) > text.count(bracket[1])
