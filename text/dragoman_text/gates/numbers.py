"""Gate `numbers`: numbers of the source are missing in the answer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.number_words import is_written_out
from dragoman_text.gates.prose import prose
from dragoman_text.verdicts import Candidate

# Digits with single separators of thousands, decimals, times or dates between them.
_NUMBER: Final = re.compile("[0-9]+(?:[.,:'’٫٬ \u00a0\u2009\u202f/-][0-9]+)*")
_DIGITS: Final = re.compile("[0-9]+")
_SEARCHED: Final = 20  # of those that are missing as they are; bounds the time
_FULL_HOUR: Final = re.compile("(?<=[0-9]):00(?![0-9])")
_AFTERNOON: Final = re.compile(
    r"(?<![0-9.,:])(1[3-9]|2[0-3])"
    r"(?=:[0-9]{2}|[ \u00a0\u202f]?(?:h(?![a-z])|Uhr|uur|時|时|點|点|시))"
)
"""Hours of the 24-hour clock: 14:30, 14 h 30, 14 Uhr, 14時."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if a number of at least two digits is missing; separators do not count.

    Times may be written otherwise: 14:30 as 2:30, and 11:00 without its minutes; and so may 10 to
    20, the tens and 100 in words.
    """
    source = prose(candidate.source)
    if not any(map(str.isdigit, source)):
        return None
    target = _western(prose(candidate.target))
    source = _western(source)
    expected, found = _numbers(_FULL_HOUR.sub("", source)), _numbers(target)
    groups = _DIGITS.findall(target)
    digits = "".join(groups)
    missing = [each for each, times in expected.items() if found[each] < times]
    missing = [each for each in missing[:_SEARCHED] if each not in digits or found[each]]
    hours = set(_AFTERNOON.findall(source)) if missing else set[str]()
    missing = [each for each in missing if each not in hours or str(int(each) - 12) not in groups]
    missing = [each for each in missing if not is_written_out(each, target, candidate.target_lang)]
    return Defect(f"The answer lacks {listed(missing)}.", slight=True) if missing else None


def _numbers(text: str) -> Counter[str]:
    groups = (_DIGITS.findall(match[0]) for match in _NUMBER.finditer(text))
    return Counter(each for group in groups for each in group if len(each) >= 2)


def _western(text: str) -> str:
    """Return the text with the digits of all scripts as 0-9."""
    if text.isascii():
        return text
    return "".join(_western_digit(each) if each.isdigit() else each for each in text)


def _western_digit(character: str) -> str:
    return str(unicodedata.digit(character, character))
