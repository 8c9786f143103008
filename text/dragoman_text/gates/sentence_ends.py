"""Marks at the ends of sentences: whether a text ends with one, and how many sentences end."""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates import languages

_SENTENCE: Final = (*".!?…。！？｡।॥؟۔።፧፨။។։᱾᱿", "፡፡")
"""Amharic and Tigrinya are mostly typed with two marks of words for a full stop."""
_CLAUSE: Final = tuple(":;：；؛|፤")
"""Marks that may stand for an end: a bar is typed for the danda."""
_CLOSING: Final = "\"'“”‘’»«›‹」』）)]】}*_`"
"""Quotes, brackets and markup that may follow the mark; German and Danish close with “ and «."""
_AROUND: Final = f"{_CLOSING} \t\r\n\u3000\u00a0\u061c\u200b\u200e\u200f\u202c\u2069\ufeff"
_BLANKS: Final = " \t\r\n\u3000\u00a0"
_CORNERS: Final = frozenset("」』")
_QUOTES: Final = frozenset("\"'“”‘’»«›‹」』")
_MOST_TAGS: Final = 20
_ABBREVIATIONS: Final = (
    r"(?<!\b[A-Z])(?<!\b(?:Mr|Ms|Dr|St|No|vs|Jr|Sr|Lt|Co|Nr|ca))"
    r"(?<!\b(?:Mrs|Gen|Gov|Sen|Rep|Sgt|Col|Inc|Ltd|etc|Jan|Feb|Mar|Apr|Aug|Sep|Oct|Nov|Dec))"
    r"(?<!\b(?:Prof|Corp|Sept|Capt))(?<!\b[a-z]\.[a-z])"
)
# A row of marks is looked at once, at its beginning, so 100,000 full stops take linear time.
_ENDS: Final = re.compile(
    rf"(?<![.!?…]){_ABBREVIATIONS}[.!?…]++[{re.escape(_CLOSING)}]*+(?=\s+[^\sa-z]|\s*\Z)"
    "|[。！？｡।॥؟۔።፧፨။។։᱾᱿]|፡፡"
)
_WITHOUT: Final = frozenset({"Thai", "Laoo", "Tibt"})
_LEFT_OUT: Final = frozenset({"as", "din", "ee", "kbp", "knc", "lg", "mey", "om", "shi"})
"""Languages that end 5-66 % of the sentences of NTREX-128 and FLORES-200 without a mark."""


def are_written(tag: str) -> bool:
    """Return whether the language of the tag ends sentences with marks."""
    return languages.script(tag) not in _WITHOUT


def are_left_out(tag: str) -> bool:
    """Return whether people often write the language of the tag without marks at the ends."""
    return languages.base(tag) in _LEFT_OUT


def ends_sentence(text: str) -> bool:
    """Return whether the last character but blanks, quotes, brackets and tags ends a sentence."""
    return _core(text).endswith(_SENTENCE)


def ends_with_mark(text: str) -> bool:
    """Return whether that character is any mark: a colon may introduce what follows the text."""
    return _core(text).endswith((*_SENTENCE, *_CLAUSE))


def closes_quotation(source: str, target: str) -> bool:
    """Return whether both texts end with a closing quote; a Japanese one needs no full stop."""
    last = target.rstrip(_BLANKS)[-1:]
    return last in _CORNERS or (last in _QUOTES and source.rstrip(_BLANKS)[-1:] in _QUOTES)


def _core(text: str) -> str:
    core = text.rstrip(_AROUND)
    for _ in range(_MOST_TAGS):
        if not core.endswith(">") or "<" not in core:
            break
        core = core[: core.rindex("<")].rstrip(_AROUND)
    return core


def count(text: str) -> int:
    """Return how many sentences end in the text, not behind initials and common abbreviations."""
    return sum(1 for _ in _ENDS.finditer(text))
