"""Answers that repeat the prompt: its frame, the context, or the terms of the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman_text.gates.defect import Defect
from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate

_PART: Final = re.compile(r"\n|(?<=[.!?…])\s+|(?<=[。！？])")
_BETWEEN: Final = re.compile(
    r"[\s\"'“”„«»*`]{0,4}(?:-{1,2}>|={1,2}>?|→|⇒|[:：|]|[-–—]\s)[\s\"'“”„«»*`]{0,4}"
)
_LEAST_WORDS: Final = 4
_LEAST_DENSE: Final = 10
"""Words of a sentence, or Chinese, Japanese and Korean letters of one without blanks."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has a line of the prompt, or its terms, and the source not."""
    if not candidate.prompt and not candidate.terms:
        return None
    source, target = _normal(candidate.source), _normal(candidate.target)
    for part in _parts(candidate.prompt):
        if part in target and part != target and part not in source:
            return Defect("The answer repeats a part of the prompt.")
    for term in candidate.terms:
        if _has_pair(target, term) and not _has_pair(source, term):
            return Defect("The answer repeats terms of the glossary.")
    return None


def _has_pair(text: str, term: Term) -> bool:
    return any(_is_paired(text, term.source, each) for each in term.targets)


def _parts(prompt: tuple[str, ...]) -> Iterator[str]:
    """Return the sentences of the prompt that are long enough to be told from other texts."""
    for text in prompt:
        for part in _PART.split(text):
            found = _normal(part)
            dense = sum(character >= "\u2e80" for character in found)
            if dense >= _LEAST_DENSE or found.count(" ") + 1 >= _LEAST_WORDS:
                yield found


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_paired(text: str, source: str, target: str) -> bool:
    """Return whether the text has the term, a sign such as an arrow, and its translation."""
    first, second = _normal(source), _normal(target)
    place = text.find(first)
    while place >= 0:
        between = _BETWEEN.match(text, place + len(first))
        if between is not None and text.startswith(second, between.end()):
            return True
        place = text.find(first, place + 1)
    return False
