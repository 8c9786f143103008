"""Gate `glossary`: the answer uses the terms that the glossary demands."""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates import languages
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate

_UNSPACED: Final = frozenset(
    {"Hans", "Hant", "Jpan", "Kore", "Thai", "Khmr", "Laoo", "Mymr", "Tibt"}
)
_LONG_WORD: Final = 6
_STEM: Final = 4
_ENDING: Final = 3
_VOWELS: Final = "aeiouyаеиоуыэюяёії"
_WORD: Final = re.compile(
    r"[^\W_]+(?:[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f]+[^\W_]*)*"
)


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if no form of a term that occurs in the source occurs in the answer.

    Forms match whatever their case; words may be inflected: the first four letters of a word of
    six suffice, a shorter word may have an ending of up to three. Scripts without blanks between
    words are searched for the form as it is.
    """
    if not candidate.terms:
        return None
    spaced = languages.script(candidate.target_lang) not in _UNSPACED
    answer = _Answer(candidate.target, spaced=spaced)
    missing = [
        term for term in candidate.terms if not any(answer.has(f, term) for f in term.targets)
    ]
    if not missing:
        return None
    wanted = [f"{term.source} = {term.targets[0] if term.targets else ''}" for term in missing]
    return Defect(f"The answer lacks the terms {listed(wanted)}.")


class _Answer:
    """An answer and its words, folded once."""

    def __init__(self, text: str, *, spaced: bool) -> None:
        self._text = text
        self._folded = text.casefold()
        self._spaced = spaced
        words = set(_WORD.findall(self._folded)) if spaced else set[str]()
        self._stems = {word[:length] for word in words for length in range(1, _STEM + 1)}
        self._beginnings = {
            word[: len(word) - ending] for word in words for ending in range(_ENDING + 1)
        }

    def has(self, form: str, term: Term) -> bool:
        """Return whether the form occurs; an empty one does."""
        if term.case_sensitive:
            return form in self._text
        folded = form.casefold()
        words = _WORD.findall(folded) if self._spaced and len(folded) < _LONG_WORD else []
        if not words and folded in self._folded:
            return True
        words = words or _WORD.findall(folded)
        return self._spaced and bool(words) and all(map(self._has_word, words))

    def _has_word(self, word: str) -> bool:
        if len(word) >= _LONG_WORD:
            return word[:_STEM] in self._stems
        if len(word) >= _STEM and word[-1] in _VOWELS:
            return word[:-1] in self._beginnings  # inflection replaces it: "база", "базой"
        return word in self._beginnings
