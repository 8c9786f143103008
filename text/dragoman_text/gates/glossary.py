"""Gate `glossary`: the answer uses the terms that the glossary demands."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_LONGER: Final = 2
"""Letters that an inflected word may have more than the form: not "Computation" for "Computer"."""
_OF_ARABIC: Final = "ال و ف ب ك ل س لل وال فال بال كال ولل وب ول"
_OF_HEBREW: Final = "ה ו ב ל מ ש כ וה וב ול ומ וש וכ שה כש מה בה לה"
_CLITICS: Final = {"Arab": _OF_ARABIC.split(), "Hebr": _OF_HEBREW.split()}
"""Articles, prepositions and conjunctions that are written in one word with a noun."""
_LEAST_NOUN: Final = 2
_MUTATED: Final = ("gc", "bp", "dt", "nd", "ng", "mb", "bhf", "ts")
"""What a first letter becomes in Irish and Scottish Gaelic, before the letter itself."""
_LENGTHENED: Final = re.compile("ー(?![ァ-ヺー])")
"""Computer is コンピューター or コンピュータ."""
_VOWELS: Final = "aeiouyаеиоуыэюяёії"
_WORD: Final = re.compile(
    r"[^\W_]+(?:[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f]+[^\W_]*)*"
)


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if no form of a term that occurs in the source occurs in the answer.

    Forms match whatever their case; words may be inflected: of a word of six letters and more the
    last three may differ, a shorter word may have an ending of up to three; articles of Arabic and
    Hebrew may precede it. Scripts without blanks between words are searched for the form as it is.
    """
    if not candidate.terms:
        return None
    answer = _Answer(candidate.target, candidate.target_lang)
    missing = [
        term for term in candidate.terms if not any(answer.has(f, term) for f in term.targets)
    ]
    if not missing:
        return None
    wanted = [f"{term.source} = {term.targets[0] if term.targets else ''}" for term in missing]
    return Defect(f"The answer lacks the terms {listed(wanted)}.")


class _Answer:
    """An answer and its words, folded once."""

    def __init__(self, text: str, tag: str) -> None:
        self._text = text
        self._script = languages.script(tag)
        self._is_gaelic = languages.base(tag) in ("ga", "gd")
        self._folded = self._fold(text)
        self._spaced = self._script not in _UNSPACED
        found = set(_WORD.findall(self._folded)) if self._spaced else set[str]()
        words = {each for word in found for each in self._bare(word)}
        self._stems = {
            (word[: len(word) - ending], ending)
            for word in words
            for ending in range(_ENDING + _LONGER + 1)
        }
        self._beginnings = {stem for stem, ending in self._stems if ending <= _ENDING}

    def has(self, form: str, term: Term) -> bool:
        """Return whether the form occurs; an empty one does."""
        if term.case_sensitive:
            return form in self._text
        folded = self._fold(form)
        words = _WORD.findall(folded) if self._spaced and len(folded) < _LONG_WORD else []
        if not words and folded in self._folded:
            return True
        words = words or _WORD.findall(folded)
        return self._spaced and bool(words) and all(map(self._has_word, words))

    def _fold(self, text: str) -> str:
        folded = text.casefold()
        return _LENGTHENED.sub("", folded) if self._script == "Jpan" else folded

    def _bare(self, word: str) -> Iterator[str]:
        """Yield the word, and what it is without what its language writes in front of it."""
        yield word
        for clitic in _CLITICS.get(self._script or "", ()):
            if word.startswith(clitic) and len(word) > len(clitic) + _LEAST_NOUN:
                yield word[len(clitic) :]
        if self._is_gaelic:
            for mutated in _MUTATED:
                if word.startswith(mutated):
                    yield word[len(mutated) - 1 :]
            if word[1:2] == "h":
                yield word[0] + word[2:]

    def _has_word(self, word: str) -> bool:
        return any(map(self._has_bare, self._bare(word)))

    def _has_bare(self, word: str) -> bool:
        if len(word) >= _LONG_WORD:
            stem = word[: max(_STEM, len(word) - _ENDING)]
            longest = len(word) - len(stem) + _LONGER
            return any((stem, ending) in self._stems for ending in range(longest + 1))
        if len(word) >= _STEM and word[-1] in _VOWELS:
            return word[:-1] in self._beginnings  # inflection replaces it: "база", "базой"
        return word in self._beginnings
