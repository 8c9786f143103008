"""Marks at the ends of sentences: whether a text ends with one, and how many sentences end."""

from __future__ import annotations

import re
from typing import Final

from dragoman_worker.quality.gates import languages

_MARKS: Final = ".!?…:;。！？｡：；।॥؟؛۔።။។։"
_CLOSING: Final = "\"'“”‘’»«›‹」』）)]】}>*_`"
"""Quotes, brackets and markup that may follow the mark; German and Danish close with “ and «."""
# A row of marks is looked at once, at its beginning, so 100,000 full stops take linear time.
_ENDS: Final = re.compile(
    rf"(?<![.!?…])[.!?…]++[{re.escape(_CLOSING)}]*+(?=\s|\Z)|[。！？｡।॥؟۔።။។։]"
)
_WITHOUT: Final = frozenset({"Thai", "Laoo", "Tibt"})


def are_written(tag: str) -> bool:
    """Return whether the language of the tag ends sentences with marks."""
    return languages.script(tag) not in _WITHOUT


def ends_with_mark(text: str) -> bool:
    """Return whether the last character but blanks, quotes and brackets ends a sentence."""
    return text.rstrip(f"{_CLOSING} \t\r\n\u3000\u00a0").endswith(tuple(_MARKS))


def count(text: str) -> int:
    """Return how many sentences end in the text, abbreviations included."""
    return sum(1 for _ in _ENDS.finditer(text))
