"""Search for terms as whole words, ignoring case, in a prepared copy of the text.

In the copy every character that can be at the edge of a word is between two marks. A term with a
mark at each plain end then occurs in the copy exactly where it is a whole word. So a search takes
one pass in C, however often the term occurs inside other words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dragoman_text.terms import MARK, marked

_MAX_CACHED_TERM_CHARS: Final = 200


def occurs(term: str, text: str) -> bool:
    """Return whether `term` occurs in `text` as a whole word, ignoring case.

    Scripts without spaces have no visible word boundaries, so there any occurrence counts.
    """
    wanted = _cached_term(term) if len(term) <= _MAX_CACHED_TERM_CHARS else _term(term)
    copy, words = _copy(text)
    word = wanted[1:-1]
    if MARK not in word:  # a single word, found in the set without a search
        return word in words
    return wanted in copy


@lru_cache(maxsize=4)
def _copy(text: str) -> tuple[str, frozenset[str]]:
    """Return the copy to search and its words; cached, as all terms of an item use the same copy.

    The words contain no empty string, so a blank term occurs nowhere.
    """
    copy = f"{MARK}{marked(text)}{MARK}"
    return copy, frozenset(copy.split(MARK)) - {""}


def _term(term: str) -> str:
    """Return the term as it is searched in the copy, empty if the term is blank."""
    wanted = marked(term.strip())
    if not wanted:
        return ""
    before = "" if wanted.startswith(MARK) else MARK
    after = "" if wanted.endswith(MARK) else MARK
    return f"{before}{wanted}{after}"


_cached_term = lru_cache(maxsize=4_096)(_term)
"""Cached, because each item and each piece of an item searches for all terms of the job."""
