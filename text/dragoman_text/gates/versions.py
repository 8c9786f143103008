"""Answers that hold more than one version, a long note in brackets, or the answer to a question."""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates import languages, length, sentence_ends
from dragoman_text.gates.defect import Defect
from dragoman_text.gates.prose import weighed_letters
from dragoman_text.verdicts import Candidate

_SLASH: Final = re.compile(r" (?://?|\|) ")
_BRACKETS_BEHIND: Final = re.compile(r"[(（\[［]([^()（）\[\]［］]{3,})[)）\]］][ .。]*\Z")
_BRACKET: Final = re.compile("[(（\\[［]")
_ASKS: Final = re.compile("[?？؟;՞]")
_EXCLAMATION: Final = re.compile("[!！]")
_LEAST_SOURCE: Final = 40
"""Characters from which on a source has a usual length of its translation."""
_VERSION: Final = 0.6
_TWICE: Final = 1.7
_WITH_NOTE: Final = 1.15
_MOST_IN_BRACKETS: Final = 0.5
"""Ratios to the usual length of each of two versions, of twice the sentences and of an answer with
a note, and of brackets at the end to what is before them: authors write in brackets, too, what the
source has without."""
_LEAST_ASKED: Final = 20
"""Letters of a question: shorter ones, as "Why not try it?", become requests and labels."""
_UNASKED: Final = frozenset({"ja", "th", "lo", "km", "my", "bo", "dz", "hy", "am", "ti"})
"""Languages that often ask with a word alone, or with a mark of their own."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has a second version, a long note, or a statement alone."""
    return _versions(candidate) or _answered(candidate)


def _versions(candidate: Candidate) -> Defect | None:
    """Return a defect for a second version, or for brackets half as long as the translation."""
    source, answer = candidate.source.strip(), candidate.target.strip()
    if len(source) < _LEAST_SOURCE:
        return None
    ratio, usual = length.ratio(candidate)
    brackets = _BRACKETS_BEHIND.search(answer[-2 * len(source) :]) if _may_close(answer) else None
    is_prose = sentence_ends.ends_sentence(source)  # names have their original behind them
    if brackets is not None and is_prose and _BRACKET.search(source) is None:
        behind = len(brackets[0])
        if ratio > _WITH_NOTE and behind >= _MOST_IN_BRACKETS * (len(answer) - behind):
            return Defect("The answer ends with a note.")
    if _lines(answer) > _lines(source) or ratio < 1.0:
        return None
    versions = _SLASH.split(answer)
    if len(versions) == 2 and not _SLASH.search(source):
        shorter = min(map(len, versions))
        return Defect("The answer has two versions.") if shorter >= _VERSION * usual else None
    if ratio > _TWICE and sentence_ends.count(answer) >= 2 * max(1, sentence_ends.count(source)):
        return Defect("The answer has twice the sentences.", slight=True)
    return None


def _may_close(answer: str) -> bool:
    return answer.rstrip(" .。").endswith((")", "）", "]", "］"))


def _answered(candidate: Candidate) -> Defect | None:
    """Return a slight defect for a statement where the source is a longer question alone."""
    source, answer = candidate.source.strip(), candidate.target.strip()
    if not source.endswith(("?", "？", "؟")) or _ASKS.search(answer):
        return None
    if sentence_ends.count(source) != 1 or weighed_letters(source) < _LEAST_ASKED:
        return None
    if not sentence_ends.ends_sentence(answer) or _EXCLAMATION.search(answer):
        return None
    if languages.base(candidate.target_lang) in _UNASKED:
        return None
    return Defect("The source asks, the answer does not.", slight=True)


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())
