"""Relatives told apart by words that only one of them has.

`relative_words.tsv` has, for pairs that py3langid often takes for each other, the first six letters
of words that are common in one of the two and hardly occur in the other. They come from FLORES-200
and the first half of NTREX-128; in all of NTREX-128 three texts of 34,000 are taken for a relative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from dragoman_text.gates import languages

_WORD: Final = re.compile(r"[^\W\d_]+")
_LETTERS: Final = 6
_LEAST: Final = 2
_AGAINST_OWN: Final = 4
"""Words of the relative for each one of the language itself: quotations have some of both."""


class _Words(NamedTuple):
    relative: str
    own: frozenset[str]
    theirs: frozenset[str]


def by_words(text: str, tag: str) -> str | None:
    """Return the relative in whose words the text is written, None if it may be in the language."""
    tables = _tables().get(languages.base(tag))
    if tables is None:
        return None
    words = {word[:_LETTERS] for word in _WORD.findall(text)}
    for table in tables:
        theirs = len(words & table.theirs)
        if theirs >= _LEAST and theirs >= _LEAST + _AGAINST_OWN * len(words & table.own):
            return table.relative
    return None


@cache
def _tables() -> Mapping[str, tuple[_Words, ...]]:
    """Return the words by language, for each of its relatives."""
    found: dict[str, tuple[_Words, ...]] = {}
    for language, table in _rows():
        found[language] = (*found.get(language, ()), table)
    return found


def _rows() -> Iterator[tuple[str, _Words]]:
    place = files("dragoman_text.gates").joinpath("relative_words.tsv")
    for line in place.read_text("utf-8").splitlines()[1:]:
        language, relative, *columns = line.split("\t")
        own, theirs = (frozenset(column.split()) for column in columns)
        yield language, _Words(relative, own, theirs)
        yield relative, _Words(language, theirs, own)
