"""Splitting of texts into pieces that fit and can be translated separately and rejoined."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import sentencex

from dragoman_text.spans import find_spans

Fits = Callable[[str], bool]

# ASCII punctuation ends a clause only before a blank: "1,000" and "12:30" are not split.
_CLAUSE: Final = re.compile(r"(?:[,;:…—–،؛](?=\s)|[、，；：。！？])\s*|\n+\s*")
_BLANK: Final = re.compile(r"\s+")


def split_sentences(text: str, lang: str) -> list[str]:
    """Return the sentences of ``text``, each with its trailing blanks; joined they are ``text``.

    ``lang`` is a BCP-47 tag; without rules for it, those of a related language apply. Text in
    scripts that do not mark sentence ends (Thai, Khmer) is returned as one sentence.
    """
    sentences = list(sentencex.segment(lang, text))  # pyright: ignore[reportAttributeAccessIssue]
    if "".join(sentences) != text:
        return [text] if text else []
    return _cut(text, _behind_blanks(text, _ends(sentences)))


def pack(pieces: Iterable[str], fits: Fits, terms: Sequence[str] = ()) -> list[str]:
    """Return the chunks of `packed` as a list."""
    return list(packed(pieces, fits, terms))


def packed(pieces: Iterable[str], fits: Fits, terms: Sequence[str] = ()) -> Iterator[str]:
    """Join consecutive pieces into the longest chunks that fit; nothing is lost or reordered.

    A piece that does not fit is split at clauses, then at blanks, never inside a protected span
    (``find_spans`` with ``terms``). A piece that cannot be split is yielded unchanged, although it
    does not fit. If ``fits`` holds for a text, it must hold for every part of it.
    """
    parts = [piece for piece in pieces if piece]
    start, guess = 0, 1
    while start < len(parts):
        end = _longest_fit(parts, start, guess, fits)
        behind = start if end == start + 1 and not fits(parts[start]) else end
        if (smaller := _split(parts, behind, fits, terms)) is not None:
            parts[behind : behind + 1] = smaller
            continue
        yield "".join(parts[start:end])
        start, guess = end, end - start


def _split(parts: Sequence[str], place: int, fits: Fits, terms: Sequence[str]) -> list[str] | None:
    """Return the clauses of an oversized part, or the words of a single clause; None to keep it."""
    if place == len(parts) or fits(parts[place]):
        return None
    part = parts[place]
    for pattern in (_CLAUSE, _BLANK):
        smaller = _cut(part, _outside_spans(part, pattern, terms))
        if len(smaller) > 1:
            return smaller
    return None


def _longest_fit(parts: Sequence[str], start: int, guess: int, fits: Fits) -> int:
    """Return the largest end for which ``parts[start:end]`` fits, at least ``start + 1``.

    ``fits`` counts tokens, and a long text has many parts. So the search starts at ``guess``, the
    number of parts of the last chunk; its steps double, then halve.
    """

    def whole(end: int) -> bool:
        return end <= len(parts) and fits("".join(parts[start:end]))

    step, good = 1, start + guess
    if good == start + 1 or whole(good):
        while whole(good + step):
            good += step
            step *= 2
    else:
        while good > start + 1 and not whole(good):
            good = max(start + 1, good - step)
            step *= 2
    while step > 1:
        step //= 2
        if whole(good + step):
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
