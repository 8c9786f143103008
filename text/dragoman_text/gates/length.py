"""Gate `length`: the answer is far shorter or longer than human translations are."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
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
"""Between the medians of Tatoeba, the help of LibreOffice and Debian's message catalogues, which
keep more English words (`medians.py` in benchmarks/quality)."""
_TABLE_OF_SENTENCES: Final = """
    ace 1.07, acm 0.85, acq 0.87, aeb 0.84, af 1.05, ajp 0.82, am 0.66, apc 0.82, ars 0.87, as
    0.96, ast 1.04, awa 0.96, ay 1.05, az 1.08, azb 0.88, ban 1.09, bem 1.20, bho 0.96, bjn
    1.04, bm 0.95, bo 1.13, bug 1.05, ceb 1.20, cjk 1.06, cy 1.07, din 0.83, dv 1.23, ee 0.95,
    fil 1.18, fj 1.16, fuc 0.92, fur 1.09, fuv 0.92, ga 1.14, gd 1.22, gu 0.95, ha 1.05, hmn
    1.33, hne 0.96, ht 0.92, hy 1.06, ilo 1.20, kac 1.27, kbp 1.07, kg 1.13, ki 1.13, kmb 1.09,
    kn 1.04, ks 0.95, lb 1.12, li 1.04, lij 1.10, lmo 1.07, ln 1.07, lua 1.07, lus 1.11, mag
    0.96, mey 0.85, mg 1.21, mi 1.11, min 1.06, mk 1.04, ml 1.12, mn 1.04, mni 1.04, mos 0.94,
    mt 1.10, nd 1.19, ne 0.96, nso 1.14, nus 1.08, ny 1.12, oc 1.14, pap 1.05, ps 0.92, qu 1.06,
    rn 1.10, rw 1.10, sat 1.06, sc 1.16, scn 1.04, sd 0.89, sg 1.07, shi 0.87, shn 1.41, sm
    1.12, sn 1.11, so 1.15, sq 1.10, ss 1.11, st 1.19, sw 1.04, taq 0.95, tg 1.10, ti 0.67, tk
    1.06, tn 1.23, to 1.27, tpi 1.27, ts 1.18, tum 1.28, tw 0.96, ty 1.26, tzm 0.89, ug 1.06,
    umb 1.04, uz 1.13, ve 1.21, war 1.24, xh 1.05, yi 1.07, yo 0.95, zu 1.04
"""
"""Between the medians of FLORES-200 devtest and NTREX-128 that differ from 1 by 4 % and more.

Translators differ: Oromo is 1.17 times as long as English in one, 0.97 times in the other."""
MEDIANS: Final[Mapping[str, float]] = {
    row.split()[0]: float(row.split()[1])
    for table in (_TABLE_OF_SENTENCES, _TABLE)
    for row in table.split(",")
}
"""Characters per character of the English source, by language; 1 for others."""

SHORTEST: Final = 0.35
LONGEST: Final = 2.85
"""Bounds of the ratio to the pair's median: 0.02 % of 2.34 million human pairs are outside."""

_DENSE: Final = 0.7
"""Ratio below which a language says as much with much fewer characters: Chinese, Japanese."""
_LATIN_WORD: Final = re.compile(r"[A-Za-z0-9#@_\u00c0-\u024f][\w.'’&+\-]*", re.ASCII)
_SHORT: Final = ((300, 0.65), (200, 0.6), (100, 0.55), (0, 0.5))
"""From this length of the source on, a lower ratio is slight: long translations vary less."""
_WITHOUT_MARK: Final = 0.05
"""Added for a source without an end mark, whose loss would show that the answer is cut off."""
_LONG: Final = 2.0
_LEAST_SOURCE: Final = 40
_SLACK: Final = 60
"""Characters more than the median that the translation of a shorter source may have."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the length is outside the bounds; slight outside the inner ones.

    Rests where the answer is the source, which `copy` judges: names are as long in Chinese.
    """
    if candidate.source.strip() == candidate.target.strip():
        return None
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
    texts = candidate.source, candidate.target
    return _lengths_of(*texts, candidate.source_lang, candidate.target_lang)


@lru_cache(maxsize=4)
def _lengths_of(
    source: str, target: str, source_lang: str | None, target_lang: str
) -> tuple[int, float, int]:
    """Return the source's length, the expected one, and the answer's.

    With or without names and code, whichever makes the answer look more usual: translations keep
    them, but one language writes as a word what another writes as an identifier. Between languages
    of different density, also without the words that both have.
    """
    factor = _median(source, source_lang, target_lang)
    whole, words = (
        (len(part(source).strip()), len(part(target).strip())) for part in (prose, plain)
    )
    choices = [whole, words]
    if "``" in target and "``" not in source:  # quotation marks of Kurdish, and no code
        choices.append((len(source.strip()), len(target.strip())))
    if not _DENSE < factor < 1 / _DENSE:
        kept = _kept(prose(source), prose(target))
        choices.append((max(0, whole[0] - kept[0]), max(0, whole[1] - kept[1])))
    length, found = min(choices, key=lambda each: _distance(factor * each[0], each[1]))
    return length, factor * length, found


def _kept(source: str, target: str) -> tuple[int, int]:
    """Return how many characters the words have that both texts have, in each."""
    words, others = _LATIN_WORD.findall(source), _LATIN_WORD.findall(target)
    both = {*words} & {*others}
    return _size(words, both), _size(others, both)


def _size(words: Iterable[str], counted: Collection[str]) -> int:
    return sum(len(each) + 1 for each in words if each in counted)


def _distance(expected: float, length: int) -> float:
    return abs(math.log(length / expected)) if length and expected else math.inf


def _median(text: str, source_lang: str | None, target_lang: str) -> float:
    """Return the median ratio of the pair: the quotient of the medians from English."""
    from_english = _from_english(source_lang) if source_lang else _of_unknown(text)
    return _from_english(target_lang) / from_english


def _from_english(tag: str) -> float:
    return MEDIANS.get(languages.base(tag), 1.0)


def _of_unknown(text: str) -> float:
    """Return the median of Japanese for a text mostly of Chinese, Japanese or Korean letters."""
    sample = [each for each in text[:1_000] if each.isalpha()]
    dense = sum(each >= "\u2e80" for each in sample)
    return MEDIANS["ja"] if 2 * dense > len(sample) else 1.0
