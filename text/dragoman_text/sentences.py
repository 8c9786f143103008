"""Where may a text be cut so that its pieces fit, can be translated alone and joined again?"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import sentencex

from dragoman_text.spans import find_spans

Fits = Callable[[str], bool]

# ASCII punctuation ends a clause only before a blank: "1,000" and "12:30" are no clauses.
_CLAUSE: Final = re.compile(r"(?:[,;:…—–،؛](?=\s)|[、，；：。！？])\s*|\n+\s*")
_BLANK: Final = re.compile(r"\s+")


def split_sentences(text: str, lang: str) -> list[str]:
    """The sentences of ``text``, each with the blanks behind it; joined they are ``text``.

    ``lang`` is a BCP-47 tag; without rules for it the ones of a related language are used. Scripts
    that do not mark the ends of sentences (Thai, Khmer) come back as one.
    """
    sentences = list(sentencex.segment(lang, text))  # pyright: ignore[reportAttributeAccessIssue]
    if "".join(sentences) != text:
        return [text] if text else []
    return _cut(text, _behind_blanks(text, _ends(sentences)))


def pack(pieces: Iterable[str], fits: Fits, terms: Sequence[str] = ()) -> list[str]:
    """Join consecutive pieces into the longest chunks that fit; joined they are the pieces.

    A piece that does not fit is split at clauses, then at blanks, never inside a protected span
    (``find_spans`` with ``terms``); what cannot be split comes back as it is, for the caller to
    judge. ``fits`` must hold for the parts of whatever it holds for.
    """
    parts = [part for piece in pieces if piece for part in _fitting(piece, fits, terms)]
    chunks, start = [], 0
    while start < len(parts):
        end = _longest_fit(parts, start, fits)
        chunks.append("".join(parts[start:end]))
        start = end
    return chunks


def _fitting(piece: str, fits: Fits, terms: Sequence[str]) -> Iterator[str]:
    if fits(piece):
        yield piece
        return
    for clause in _cut(piece, _outside_spans(piece, _CLAUSE, terms)):
        if fits(clause):
            yield clause
        else:
            yield from _cut(clause, _outside_spans(clause, _BLANK, terms))


def _longest_fit(parts: Sequence[str], start: int, fits: Fits) -> int:
    """The largest end for which ``parts[start:end]`` fits, at least ``start + 1``.

    Doubles, then halves the step: ``fits`` counts tokens, and a long text has many parts.
    """

    def whole(end: int) -> bool:
        return fits("".join(parts[start:end]))

    step, good = 1, start + 1
    while good + step <= len(parts) and whole(good + step):
        good += step
        step *= 2
    while step > 1:
        step //= 2
        if good + step <= len(parts) and whole(good + step):
            good += step
    return good


def _outside_spans(text: str, pattern: re.Pattern[str], terms: Sequence[str]) -> list[int]:
    spans = find_spans(text, terms)
    starts = [span.start for span in spans]

    def inside(place: int) -> bool:
        before = bisect_left(starts, place) - 1
        return before >= 0 and place < spans[before].end

    return [match.end() for match in pattern.finditer(text) if not inside(match.end())]


def _ends(pieces: Iterable[str]) -> Iterator[int]:
    end = 0
    for piece in pieces:
        end += len(piece)
        yield end


def _behind_blanks(text: str, ends: Iterable[int]) -> Iterator[int]:
    for end in ends:
        blank = _BLANK.match(text, end)
        yield blank.end() if blank else end


def _cut(text: str, ends: Iterable[int]) -> list[str]:
    places = sorted({0, *ends, len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    return [piece for piece in pieces if piece]
