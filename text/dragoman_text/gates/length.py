"""Gate `length`: the answer is far shorter or longer than human translations are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from dragoman_text.gates import languages, sentence_ends
from dragoman_text.gates.defect import Defect
from dragoman_text.gates.prose import plain, prose
from dragoman_text.verdicts import Candidate

_TABLE: Final = """
    ar 0.84, bg 1.12, ca 1.17, cs 1.02, da 1.04, de 1.16, el 1.18, en 1.00, es 1.13, et
    1.00, eu 1.12, fa 0.94, fi 1.07, fr 1.17, gl 1.13, he 0.80, hi 1.00, hr 1.04, hu 1.09,
    id 1.08, it 1.16, ja 0.48, ka 1.09, km 1.20, ko 0.54, lt 1.03, lv 0.99, ms 1.08, my
    1.24, nb 1.03, nl 1.12, pl 1.09, pt 1.10, ro 1.14, ru 1.10, sk 1.03, sl 1.01, sr 1.03,
    sv 1.03, ta 1.12, th 0.96, tr 1.03, uk 1.08, vi 1.06, yue 0.32, zh 0.34
"""
MEDIANS: Final[Mapping[str, float]] = {
    row.split()[0]: float(row.split()[1]) for row in _TABLE.split(",")
}
"""Characters per character of the English source: between the medians of Tatoeba, the help of
LibreOffice and Debian's message catalogues, which keep more English words (`medians.py` in
benchmarks/quality). 1 for other languages."""

SHORTEST: Final = 0.35
LONGEST: Final = 2.85
"""Bounds of the ratio to the pair's median: 0.02 % of 2.34 million human pairs are outside."""

_SHORT: Final = ((300, 0.65), (200, 0.6), (100, 0.55), (0, 0.5))
"""From this length of the source on, a lower ratio is slight: long translations vary less."""
_WITHOUT_MARK: Final = 0.05
"""Added for a source without an end mark, whose loss would show that the answer is cut off."""
_LONG: Final = 2.0
_LEAST_SOURCE: Final = 40
_SLACK: Final = 60
"""Characters more than the median that the translation of a shorter source may have."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the length is outside the bounds; slight outside the inner ones."""
    source, expected, target = _lengths(candidate)
    if not source or not expected:
        return None
    if source < _LEAST_SOURCE:
        if target <= max(LONGEST * expected, expected + _SLACK):
            return None
        return Defect(f"The answer has {target} characters for {source} of the source.")
    ratio = target / expected
    if _shortest(candidate, source) <= ratio <= _LONG:
        return None
    size = f"{ratio:.2f} times as long as translations of this length usually are"
    return Defect(f"The answer is {size}.", slight=SHORTEST <= ratio <= LONGEST)


def _shortest(candidate: Candidate, source: int) -> float:
    low = next(low for least, low in _SHORT if source >= least)
    return low if sentence_ends.ends_sentence(candidate.source) else low + _WITHOUT_MARK


def ratio(candidate: Candidate) -> tuple[float, float]:
    """Return the ratio to the usual length, and that length in characters; 1 without prose."""
    _source, expected, target = _lengths(candidate)
    return (target / expected if expected else 1.0), expected


def distance(candidate: Candidate) -> float:
    """Return |log(length ratio / median)|, 0 where a text has no prose."""
    _source, expected, target = _lengths(candidate)
    found = _distance(expected, target)
    return found if math.isfinite(found) else 0.0


def _lengths(candidate: Candidate) -> tuple[int, float, int]:
    """Return the source's length, the expected one, and the answer's.

    With or without names and code, whichever makes the answer look more usual: translations keep
    them, but one language writes as a word what another writes as an identifier.
    """
    factor = median(candidate)
    whole, words = (
        tuple(len(part(text).strip()) for text in (candidate.source, candidate.target))
        for part in (prose, plain)
    )
    source, target = min((whole, words), key=lambda each: _distance(factor * each[0], each[1]))
    return source, factor * source, target


def _distance(expected: float, length: int) -> float:
    return abs(math.log(length / expected)) if length and expected else math.inf


def median(candidate: Candidate) -> float:
    """Return the median ratio of the pair: the quotient of the medians from English."""
    source = candidate.source_lang
    from_english = _from_english(source) if source else _of_unknown(candidate.source)
    return _from_english(candidate.target_lang) / from_english


def _from_english(tag: str) -> float:
    return MEDIANS.get(languages.base(tag), 1.0)


def _of_unknown(text: str) -> float:
    """Return the median of Japanese for a text mostly of Chinese, Japanese or Korean letters."""
    sample = [each for each in text[:1_000] if each.isalpha()]
    dense = sum(each >= "\u2e80" for each in sample)
    return MEDIANS["ja"] if 2 * dense > len(sample) else 1.0
