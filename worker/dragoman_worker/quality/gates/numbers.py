"""Gate `numbers`: numbers of the source are missing in the answer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from dragoman_worker.ports.quality import Candidate
from dragoman_worker.quality.gates.defect import Defect, listed
from dragoman_worker.quality.gates.prose import prose

# Digits with single separators of thousands, decimals, times or dates between them.
_NUMBER: Final = re.compile("[0-9]+(?:[.,:'’٫٬ \u00a0\u2009\u202f/-][0-9]+)*")
_DIGITS: Final = re.compile("[0-9]+")


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if a number of at least two digits is missing; separators do not count."""
    source = prose(candidate.source)
    if not any(map(str.isdigit, source)):
        return None
    expected = _numbers(source)
    found = _numbers(prose(candidate.target))
    digits = "".join(_DIGITS.findall(_western(prose(candidate.target))))
    missing = [each for each, times in expected.items() if found[each] < times]
    missing = [each for each in missing if each not in digits or found[each]]
    return Defect(f"The answer lacks {listed(missing)}.", slight=True) if missing else None


def _numbers(text: str) -> Counter[str]:
    groups = (_DIGITS.findall(match[0]) for match in _NUMBER.finditer(_western(text)))
    return Counter(each for group in groups for each in group if len(each) >= 2)


def _western(text: str) -> str:
    """Return the text with the digits of all scripts as 0-9."""
    if text.isascii():
        return text
    return "".join(_western_digit(each) if each.isdigit() else each for each in text)


def _western_digit(character: str) -> str:
    return str(unicodedata.digit(character, character))
