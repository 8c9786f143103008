"""Search for terms as whole words, ignoring case, in a prepared copy of the text.

In the copy every character that can be at the edge of a word is between two marks. A term with a
mark at each plain end then occurs in the copy exactly where it is a whole word. So a search takes
one pass in C, however often the term occurs inside other words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dragoman_text.composing import composed
from dragoman_text.terms import inside_word

_MARK: Final = "\0"
_CACHED_CHARACTERS: Final = 8_192
_MAX_CACHED_TERM_CHARS: Final = 200


class _Marked(dict[int, str | int]):
    """Table for `str.translate` with each character's form in the copy, filled on first use."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        marked = code if inside_word(character) else f"{_MARK}{character}{_MARK}"
        if len(self) < _CACHED_CHARACTERS:  # a text may have a million different characters
            self[code] = marked
        return marked


_MARKED: Final = _Marked()


def occurs(term: str, text: str) -> bool:
    """Return whether `term` occurs in `text` as a whole word, ignoring case.

    Scripts without spaces have no visible word boundaries, so there any occurrence counts.
    """
    wanted = _cached_term(term) if len(term) <= _MAX_CACHED_TERM_CHARS else _term(term)
    copy, words = _copy(text)
    word = wanted[1:-1]
    if _MARK not in word:  # a single word, found in the set without a search
        return word in words
    return wanted in copy


@lru_cache(maxsize=4)
def _copy(text: str) -> tuple[str, frozenset[str]]:
    """Return the copy to search and its words; cached, as all terms of an item use the same copy.

    The words contain no empty string, so a blank term occurs nowhere.
    """
    copy = f"{_MARK}{_marked(text)}{_MARK}"
    return copy, frozenset(copy.split(_MARK)) - {""}


def _term(term: str) -> str:
    """Return the term as it is searched in the copy, empty if the term is blank."""
    marked = _marked(term.strip())
    if not marked:
        return ""
    before = "" if marked.startswith(_MARK) else _MARK
    after = "" if marked.endswith(_MARK) else _MARK
    return f"{before}{marked}{after}"


_cached_term = lru_cache(maxsize=4_096)(_term)
"""Cached, because each item and each piece of an item searches for all terms of the job."""


def _marked(text: str) -> str:
    return composed(text).casefold().translate(_MARKED)
