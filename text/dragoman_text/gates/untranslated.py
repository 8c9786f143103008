"""Words of the source that stand in an answer as they are: a clause left untranslated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman_text import scripts
from dragoman_text.gates.prose import prose
from dragoman_text.verdicts import Candidate

_WORDS: Final = 6
_LOWER: Final = 4
_DIFFERENT: Final = 5
_LETTERS: Final = 20
"""Six words in a row, of which four are lower case and five different: names, titles and repeated
source words are not prose."""
_LETTERS_UNSPACED: Final = 16

_STRETCH: Final = re.compile(
    r"[^\d_!-&(-,./:-@\[-^`{-~\u00a1-\u00bf\u2010-\u2018\u201a-\u206f\u3000-\u303f"
    r"\u060c\u061b\u061f\u06d4\u0964\u0965\u1361-\u1368\u17d4\u17d5\u104a\u104b\uff01-\uff20]+"
)
"""Text between marks and numbers. Lists of terms are kept, "football, basketball, rugby": they
have a mark after each."""
_LINE: Final = re.compile(r"\W{0,4}[^\W\d_]+(?:,? [^\W\d_A-Z][^\W\d_A-Z]+){2,7}[.!?:]?")
"""A line of three to eight words, of which all but the first are lower case."""
_QUOTES: Final = frozenset("\"'“”„‟«»‹›「」『』‘’")
_UNSPACED: Final = scripts.runs(scripts.UNSPACED)


def source_words(candidate: Candidate) -> str | None:
    """Return six words of the source's prose that stand in a row in the answer, None without any.

    Of a source without blanks, 16 letters. What the answer has in quotation marks is quoted.
    """
    source, answer = (_kept_out(candidate, each) for each in (candidate.source, candidate.target))
    found = _shared_words(source, answer) or _shared_line(source, answer)
    return found if found or source.isascii() else _shared_letters(source, answer)


def _kept_out(candidate: Candidate, text: str) -> str:
    """Return the prose with a mark in the place of protected literals."""
    text = prose(text)
    for literal in candidate.protected[:200]:
        text = text.replace(literal, "|") if literal else text
    return text


def _shared_words(source: str, answer: str) -> str | None:
    if len(set(source.lower().split()).intersection(answer.lower().split())) < _DIFFERENT:
        return None
    known = {_key(row) for row in _rows(_STRETCH.findall(source)) if _is_prose(row)}
    rows = _rows(_unquoted(answer)) if known else ()
    return next((" ".join(row) for row in rows if _key(row) in known), None)


def _shared_line(source: str, answer: str) -> str | None:
    """Return a line of several, a short sentence or label, that the answer has as it was."""
    if "\n" not in source:
        return None
    lines = {line for line in map(str.strip, source.splitlines()) if _LINE.fullmatch(line)}
    return next((line for line in map(str.strip, answer.splitlines()) if line in lines), None)


def _rows(stretches: Iterable[str]) -> Iterator[list[str]]:
    """Yield every six words in a row."""
    for stretch in stretches:
        words = stretch.split()
        for at in range(len(words) - _WORDS + 1):
            yield words[at : at + _WORDS]


def _key(row: list[str]) -> str:
    return " ".join(row).lower()


def _is_prose(row: list[str]) -> bool:
    lower = sum(word == word.lower() for word in row)
    return lower >= _LOWER and len(set(row)) >= _DIFFERENT and sum(map(len, row)) >= _LETTERS


def _unquoted(text: str) -> Iterator[str]:
    """Yield the stretches that are not in quotation marks."""
    for found in _STRETCH.finditer(text):
        start, end = found.span()
        opened = start > 0 and text[start - 1] in _QUOTES
        if not (opened and _QUOTES.intersection(text[end : end + 2])):
            yield found[0]


def _shared_letters(source: str, answer: str) -> str | None:
    known = {row for row in _letter_rows(source) if len(set(row)) >= _LETTERS_UNSPACED // 2}
    return next((row for row in _letter_rows(answer) if row in known), None) if known else None


def _letter_rows(text: str) -> Iterator[str]:
    for run in _UNSPACED.findall(text):
        for at in range(len(run) - _LETTERS_UNSPACED + 1):
            yield run[at : at + _LETTERS_UNSPACED]
