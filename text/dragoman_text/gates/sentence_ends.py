"""Marks at the ends of sentences: whether a text ends with one, and how many sentences end."""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates import languages

_SENTENCE: Final = tuple(".!?…。！？｡।॥؟۔።။។։")
_CLAUSE: Final = tuple(":;：；؛")
_CLOSING: Final = "\"'“”‘’»«›‹」』）)]】}*_`"
"""Quotes, brackets and markup that may follow the mark; German and Danish close with “ and «."""
_AROUND: Final = f"{_CLOSING} \t\r\n\u3000\u00a0"
_MOST_TAGS: Final = 20
# A row of marks is looked at once, at its beginning, so 100,000 full stops take linear time.
_ENDS: Final = re.compile(
    rf"(?<![.!?…])[.!?…]++[{re.escape(_CLOSING)}]*+(?=\s|\Z)|[。！？｡।॥؟۔።။។։]"
)
_WITHOUT: Final = frozenset({"Thai", "Laoo", "Tibt"})


def are_written(tag: str) -> bool:
    """Return whether the language of the tag ends sentences with marks."""
    return languages.script(tag) not in _WITHOUT


def ends_sentence(text: str) -> bool:
    """Return whether the last character but blanks, quotes, brackets and tags ends a sentence."""
    return _core(text).endswith(_SENTENCE)


def ends_with_mark(text: str) -> bool:
    """Return whether that character is any mark: a colon may introduce what follows the text."""
    return _core(text).endswith((*_SENTENCE, *_CLAUSE))


def _core(text: str) -> str:
    core = text.rstrip(_AROUND)
    for _ in range(_MOST_TAGS):
        if not core.endswith(">") or "<" not in core:
            break
        core = core[: core.rindex("<")].rstrip(_AROUND)
    return core


def count(text: str) -> int:
    """Return how many sentences end in the text, abbreviations included."""
    return sum(1 for _ in _ENDS.finditer(text))
