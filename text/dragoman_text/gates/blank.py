"""Gate `blank`: the answer has no letters although the source has some."""

from __future__ import annotations

from typing import Final

from dragoman_text.gates.defect import Defect
from dragoman_text.gates.prose import letters, prose, spans
from dragoman_text.spans import has_letters
from dragoman_text.verdicts import Candidate

_LETTERS_OF_NUMBER: Final = 30
_LETTERS_OF_ENDING: Final = 2


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has no letters although the source has some.

    It is slight if a short source may be a number or a time in words: "half past two", "14:30".
    Rests where a placeholder has an ending: `{}th` is `{}.` in German.
    """
    if has_letters(candidate.target) or not has_letters(candidate.source):
        return None
    if spans(candidate.source) and letters(prose(candidate.source)) <= _LETTERS_OF_ENDING:
        return None
    has_digits = any(map(str.isdigit, candidate.target))
    slight = has_digits and letters(candidate.source) <= _LETTERS_OF_NUMBER
    return Defect("The answer has no letters.", slight=slight)
