"""Repetition that a faithful translation inherits from its source, counted in linear time."""

from __future__ import annotations

import re
from typing import Final

LEAST_REPETITIONS: Final = 8
"""Repetitions of a pattern that count as a loop if the source does not repeat: none of 48,853
human sentences has eight."""
_ALLOWED: Final = 3
"""A translation may repeat a pattern this many times as often as its source."""
_LONGEST_PERIOD: Final = 96
"""Characters: 16 tokens, the longest pattern that vLLM looks for, rarely spell more."""
_COUNTED_FROM: Final = 4
"""Fewer repetitions in the source do not raise the threshold: "...", "www" and "000" are common."""

_UNEQUAL: Final = re.compile(rb"[^\0]")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[.,'’\s](?=\d)")


def allowed_repetitions(source: str) -> int:
    """Return how often in a row a pattern may stand in the translation before it is a loop.

    Separators of table columns, leaders of dots, laughter and rows of emoji come back as often as
    they were sent, and a number loses or gains the separators between its digits.
    """
    spelled_out = _BETWEEN_DIGITS.sub("", source).replace("…", "...")
    count = longest_repetition(source)
    if spelled_out != source:
        count = max(count, longest_repetition(spelled_out))
    return LEAST_REPETITIONS if count < _COUNTED_FROM else max(LEAST_REPETITIONS, _ALLOWED * count)


def longest_repetition(text: str) -> int:
    """Return how often in a row the most repeated pattern of `text` occurs, 1 below four times.

    The text is compared with itself, shifted by each possible length of a pattern: equal characters
    become zero bytes. The operations on whole numbers and bytes run in C: 20 µs for 100 characters,
    at most 70 ms for 128 KiB.
    """
    try:
        data, width = text.encode("latin-1"), 1
    except UnicodeEncodeError:
        data, width = text.encode("utf-16-le", "surrogatepass"), 2
    # A byte before the text keeps the zero bytes of the shifted number out of the comparison.
    number = int.from_bytes(b"\x01" + data)
    best = _COUNTED_FROM - 1
    for period in range(width, min(_LONGEST_PERIOD * width, len(data) // 4) + 1, width):
        different = (number ^ (number >> (8 * period))).to_bytes(len(data) + 1)
        start = 0
        while (start := different.find(bytes(period * best), start)) >= 0:
            unequal = _UNEQUAL.search(different, start)
            end = unequal.start() if unequal else len(different)
            best, start = 1 + (end - start) // period, end
    return best if best >= _COUNTED_FROM else 1
