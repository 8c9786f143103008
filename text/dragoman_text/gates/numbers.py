"""Gate `numbers`: numbers of the source are missing in the answer, or others stand in their place.

Whole values are compared, in each way that a number can be read: `1,250` as 1250 or 1.25, `14.30`
as 14.3 or as a time, `1.5 million` also as 1500000.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.measures import is_converted
from dragoman_text.gates.number_words import factors, is_written_out, summed
from dragoman_text.gates.prose import prose
from dragoman_text.verdicts import Candidate

_BLANKS: Final = " \u00a0\u2009\u202f"
_NUMBER: Final = re.compile(
    # Blanks separate groups of three; the other marks also parts of a second, of a time, of a date.
    rf"[0-9]{{1,3}}(?:[{_BLANKS}][0-9]{{3}})++(?![0-9])(?:[.,٫،][0-9]++)?"
    "|[0-9]++(?:[.,:'’٫٬،/-][0-9]++)*+"
)
_SEPARATOR: Final = re.compile(rf"[.,:'’٫٬،/{_BLANKS}-]")
_TORN: Final = re.compile("(?<![0-9.,])([0-9]{1,3})[.,] ([0-9]{3})(?![0-9])")
"""A number with a blank too many: 26, 750."""
_DECIMAL_MARKS: Final = ".,٫،"
_GROUPING_MARKS: Final = frozenset(f".,'’٬،{_BLANKS}")
_AFTERNOON: Final = re.compile(r":[0-9]{2}|[ \u00a0\u202f]?(?:h(?![a-z])|Uhr|uur|時|时|點|点|시)")
"""What follows an hour of the 24-hour clock: 14:30, 14 h 30, 14 Uhr, 14時."""
_MORNING: Final = re.compile(r":[0-9]{2}|[ \u00a0\u202f]?[ap]\.?[ \u00a0]?m\b", re.IGNORECASE)
_LONGEST: Final = 15
"""Digits of a number that is multiplied by the word behind it."""
_SEARCHED: Final = 20
"""Missing numbers that are looked for in other spellings; bounds the time."""


class _Number(NamedTuple):
    spelled: str
    readings: tuple[tuple[str, ...], ...]
    """The values of each way to read it: one, or two of a time."""

    @property
    def value(self) -> str:
        """The likeliest value."""
        return self.readings[0][0]

    @property
    def counts_alone(self) -> bool:
        """Whether it is seldom written as a word: it has two digits or more."""
        return len(self.value) > 1


def find(candidate: Candidate) -> Defect | None:
    """Return a slight defect if the answer lacks a number of the source.

    A single digit is lacking only if a number is there that the source does not have: they are
    often written as words. So are 10 to 20, the tens and 100; and 14:30 is 2:30, 11:00 is 11.
    """
    source = prose(candidate.source)
    if not any(map(str.isdigit, source)):
        return None
    target = _western(prose(candidate.target))
    expected, found = list(_numbers(_western(source))), list(_numbers(target))
    missing = _unmatched(expected, found)
    if not missing:
        return None
    added = _unmatched(found, expected)
    torn = {"".join(each.groups()) for each in _TORN.finditer(target)}
    lacking = [
        each.spelled
        for each in islice(missing, _SEARCHED)
        if (added or each.counts_alone)
        and each.value not in torn
        and not _is_otherwise(each, added, target, candidate)
        and not is_converted(each.value, [other.value for other in added], source)
    ]
    return Defect(f"The answer lacks {listed(lacking)}.", slight=True) if lacking else None


def _unmatched(numbers: Sequence[_Number], others: Sequence[_Number]) -> list[_Number]:
    """Return the numbers of which no reading is among those of the others, as often."""
    values = Counter(value for each in others for reading in each.readings for value in reading)
    unmatched: list[_Number] = []
    for each in numbers:
        for reading in each.readings:
            if all(values[value] > 0 for value in reading):
                values.subtract(reading)
                break
        else:
            unmatched.append(each)
    return unmatched


def _is_otherwise(
    number: _Number, added: Sequence[_Number], target: str, candidate: Candidate
) -> bool:
    """Return whether the answer has the number as a word, or a year of two digits with four."""
    value = number.value
    if len(value) == 2 and any(
        len(each.value) == 4 and each.value.endswith(value) for each in added
    ):
        return True
    return is_written_out(value, target, candidate.target_lang)


# --- reading --------------------------------------------------------------------------------------


def _numbers(text: str) -> Iterator[_Number]:
    """Yield the numbers of a text. Of a date, a time or a version, each part is one."""
    for match in _NUMBER.finditer(text):
        parts, marks = _SEPARATOR.split(match[0]), _SEPARATOR.findall(match[0])
        readings = _whole(parts, marks)
        if readings:
            multiplied = _multiplied(readings, text, match.end())
            yield _Number(match[0], tuple((each,) for each in (*readings, *multiplied)))
            continue
        if len(parts) == 2 and marks[0] in _DECIMAL_MARKS:
            yield _decimal_or_time(match, parts, text)
            continue
        behind = match.start()
        for part in parts:
            behind += len(part) + 1
            yield _Number(part, tuple(_hours(part, text, behind - 1)))


def _whole(parts: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Return the values of a number with groups of thousands; none of others."""
    groups, decimals = list(parts), ""
    if len(marks) > 1 and marks[-1] in _DECIMAL_MARKS and marks[-1] != marks[-2]:
        decimals = groups.pop()
        marks = marks[:-1]
    if not marks or len({*marks}) > 1 or marks[0] not in _GROUPING_MARKS:
        return []
    if groups[0].startswith("0") or not _are_groups(groups):
        return []
    values = [_value("".join(groups), decimals)]
    if len(groups) == 2 and not decimals and marks[0] in _DECIMAL_MARKS and groups[1].strip("0"):
        values.append(_value(*groups))
    return values


def _are_groups(groups: Sequence[str]) -> bool:
    """Return whether these are groups of thousands, or of India: 12,34,567."""
    inner = {len(each) for each in groups[1:-1]}
    return len(groups[0]) <= 3 and len(groups[-1]) == 3 and inner <= {2, 3}


def _decimal_or_time(match: re.Match[str], parts: Sequence[str], text: str) -> _Number:
    value = _value(*parts)
    readings: list[tuple[str, ...]] = [
        (each,) for each in (value, *_multiplied([value], text, match.end()))
    ]
    if len(parts[1]) == 2:  # a time, or a day and a month
        hour = int(_value(parts[0][-3:]))
        hours = (hour - 12,) if 13 <= hour <= 23 else (hour + 12,) if hour < 12 else ()
        readings.append((_value(parts[0]), _value(parts[1])))
        readings += [(f"{each}.{parts[1]}".rstrip("0"),) for each in hours]
        readings += [(str(each), _value(parts[1])) for each in hours]
    return _Number(match[0], tuple(readings))


def _hours(part: str, text: str, end: int) -> Iterator[tuple[str, ...]]:
    """Yield the values of digits alone: of an hour, also that of the other clock."""
    value = _value(part)
    yield (value,)
    for each in _multiplied([value], text, end):
        yield (each,)
    if len(value) > 2:
        return
    if 13 <= int(value) <= 23 and _AFTERNOON.match(text, end):
        yield (str(int(value) - 12),)
    elif int(value) < 12 and _MORNING.match(text, end):
        yield (str(int(value) + 12),)


def _multiplied(values: Sequence[str], text: str, end: int) -> Iterator[str]:
    """Yield the values times the word behind them: 1.5 million, 150万."""
    for zeros in factors(text, end):
        for value in values:
            whole, _, decimals = value.partition(".")
            if len(value) <= _LONGEST and len(decimals) <= zeros:
                yield _value(whole + decimals + "0" * (zeros - len(decimals)))


def _value(digits: str, decimals: str = "") -> str:
    """Return a number as it is compared: without zeros at its ends."""
    whole, rest = digits.lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{rest}" if rest else whole


def _western(text: str) -> str:
    """Return the text with the digits of all scripts as 0-9, and 3億5000万 as one number."""
    if text.isascii():
        return text
    return summed("".join(_western_digit(each) if each.isdigit() else each for each in text))


def _western_digit(character: str) -> str:
    return str(unicodedata.digit(character, character))
