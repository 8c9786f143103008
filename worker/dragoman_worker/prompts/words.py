"""Terms are found as whole words, in any case, by one search of a prepared copy of the text.

The copy has every character that can stand at the edge of a word between two marks, so that a
term with a mark at each plain end occurs in it exactly where the term is a whole word. A search
for one term then takes one pass in C, however often the term occurs inside other words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from dragoman_text.composing import composed

_WRITTEN_WITHOUT_SPACES: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, and Korean, whose particles join the noun."""

_MARK: Final = "\0"
_CHARACTERS_KNOWN: Final = 8_192
_LONGEST_KNOWN_TERM: Final = 200


class _Marked(dict[int, str | int]):
    """For `str.translate`: what a character becomes in the copy, found out when it first comes."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        becomes = code if _inside_word(character) else f"{_MARK}{character}{_MARK}"
        if len(self) < _CHARACTERS_KNOWN:  # a text can hold a million different ones
            self[code] = becomes
        return becomes


_MARKED: Final = _Marked()


def occurs(term: str, text: str) -> bool:
    """Whether `term` stands in `text` as a whole word, in any case.

    Scripts without spaces have no word ends to look for, so there any occurrence counts.
    """
    wanted = _known_term(term) if len(term) <= _LONGEST_KNOWN_TERM else _term(term)
    copy, words = _copy(text)
    word = wanted[1:-1]
    if _MARK not in word:  # one word, which needs no search
        return word in words
    return wanted in copy


@lru_cache(maxsize=4)
def _copy(text: str) -> tuple[str, frozenset[str]]:
    """The text as terms are searched in it, and its words; all terms of an item ask for the same.

    There is no empty word: a blank term occurs nowhere.
    """
    copy = f"{_MARK}{_marked(text)}{_MARK}"
    return copy, frozenset(copy.split(_MARK)) - {""}


def _term(term: str) -> str:
    """What to search for, or nothing if the term is blank."""
    marked = _marked(term.strip())
    if not marked:
        return ""
    before = "" if marked.startswith(_MARK) else _MARK
    after = "" if marked.endswith(_MARK) else _MARK
    return f"{before}{marked}{after}"


_known_term = lru_cache(maxsize=4_096)(_term)
"""Each item and each piece of an item asks for all terms of the job again."""


def _marked(text: str) -> str:
    return composed(text).casefold().translate(_MARKED)


def _inside_word(character: str) -> bool:
    """Whether it belongs to a word that goes on with a neighbour of the same kind."""
    if _WRITTEN_WITHOUT_SPACES.match(character):
        return False
    return unicodedata.category(character)[0] in "LMN" or character == "_"
