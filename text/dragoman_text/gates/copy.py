"""Gate `copy`: the answer is the source, untranslated, or a clause of it is left."""

from __future__ import annotations

from typing import Final

from dragoman_text.gates import languages
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.detect import Detect
from dragoman_text.gates.prose import letters, plain
from dragoman_text.gates.untranslated import source_words
from dragoman_text.verdicts import Candidate

SIMILARITY: Final = 0.9
"""Human translations into another family: at most 0.88, 99.9 % below 0.81."""

CERTAIN: Final = 0.9
"""Confidence of the detector between the languages of the source and the answer."""

_LEAST_LETTERS: Final = 20
_LEAST_LETTERS_UNCASED: Final = 10
_LEAST_WORDS: Final = 3
# The comparison takes time in proportion to the product of the lengths; this bounds it to 1 ms.
_CHARACTERS_COMPARED: Final = 4_000


def find(candidate: Candidate, detect: Detect) -> Defect | None:
    """Return a defect if the answer resembles the source by 90 %, or six words of it are left.

    Names, codes, headlines in capitals and lists of identifiers are copied rightly: only prose
    counts. Where the source language is unknown, it may be the target's: the defect is slight.
    """
    given, asked = candidate.source_lang, candidate.target_lang
    if given is not None and languages.base(given) == languages.base(asked):
        return None
    related = given is not None and languages.same_family(asked, given)
    source = _comparable(candidate, candidate.source)
    target = _comparable(candidate, candidate.target)
    similarity = _similarity(source.lower(), target.lower()) if _is_prose(source) else 0.0
    if related:
        return _between_relatives(target, given or "", asked, similarity, detect)
    if similarity:
        return Defect(f"The answer is {similarity:.0%} like the source.", slight=given is None)
    left = source_words(candidate)
    return Defect(f"Left as it was: {listed([left])}.", slight=given is None) if left else None


def _similarity(source: str, target: str) -> float:
    """Return the share of characters in common, 0-1; 0 below the one that counts."""
    from rapidfuzz.distance import Indel  # noqa: PLC0415  the extra `gates`

    return Indel.normalized_similarity(source, target, score_cutoff=SIMILARITY)


def _between_relatives(
    answer: str, given: str, asked: str, similarity: float, detect: Detect
) -> Defect | None:
    """Return a defect if the answer is in the source's language, a slight one if it is the source.

    A translation into a relative may resemble its source; whole sentences are seldom equal.
    """
    if not similarity:
        return None
    if languages.are_separated(asked, given):
        pair = (languages.base(given), languages.base(asked))
        found = detect(answer, pair)
        if found and languages.base(found.language) == pair[0] and found.confidence >= CERTAIN:
            return Defect(f'The answer is the source, in the language "{given}".')
    return Defect("The answer is the source.", slight=True) if similarity == 1.0 else None


def _comparable(candidate: Candidate, text: str) -> str:
    text = plain(text)[:_CHARACTERS_COMPARED]
    for literal in candidate.protected[:200]:
        text = text.replace(literal, " ") if literal else text
    return " ".join(text.split())


def _is_prose(text: str) -> bool:
    """Return whether the text has enough letters, and at least 3 and most of its words lower case.

    Scripts without case count letters alone.
    """
    if not any(map(str.islower, text)):
        return not any(map(str.isupper, text)) and letters(text) >= _LEAST_LETTERS_UNCASED
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    lower = sum(word.strip("\"'“”„«»()[],.;:!?…").isalpha() and word.islower() for word in words)
    return letters(text) >= _LEAST_LETTERS and lower >= _LEAST_WORDS and 2 * lower > len(words)
