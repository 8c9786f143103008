"""Cuts of a text for the remedies, never inside a protected span; the parts joined are the text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Final

from dragoman_text.sentences import split_sentences
from dragoman_text.spans import Span

_EMPTY_LINE: Final = re.compile(r"\n[^\S\n]*\n\s*")
_LINE_BREAK: Final = re.compile(r"\n\s*")
_CLOSING: Final = frozenset(".,;:!?)]}»”’%…،؛؟、。，；：！？）】」』")
_OPENING: Final = frozenset(",;:-–—([{«“‘„¿¡、，；：（【「『")
"""Marks at the end of a clause that end no sentence; a sentence's own end is translated with it."""


def framed(text: str) -> tuple[str, str, str]:
    """Return the blanks before the text, the text without them, and the blanks behind it."""
    return _between(text, frozenset(), frozenset())


def framed_clause(text: str) -> tuple[str, str, str]:
    """Return `framed` for the text between two spans, with marks that belong to the spans' sides.

    ``), see (`` is asked for as ``see``.
    """
    return _between(text, _CLOSING, _OPENING)


def sentences(text: str, lang: str | None, spans: Sequence[Span]) -> list[str]:
    """Return the sentences, each with its trailing blanks; several that share a span are one."""
    ends = accumulate(map(len, split_sentences(text, lang or "en")))
    return _cut(text, _outside(ends, spans))


def sentences_with_spans(text: str, lang: str | None, spans: Sequence[Span]) -> list[str]:
    """Return each sentence with spans by itself, and each run of sentences without as one."""
    parts = sentences(text, lang, spans)
    starts = [span.start for span in spans]
    ends = accumulate(map(len, parts))
    holds = {
        place: bisect_left(starts, end - len(part)) < bisect_left(starts, end)
        for place, (part, end) in enumerate(zip(parts, ends, strict=True))
    }
    runs = groupby(range(len(parts)), key=lambda place: place if holds[place] else -1)
    return ["".join(parts[place] for place in run) for _, run in runs]


def paragraphs(text: str, most: int) -> list[str]:
    """Return the paragraphs: between empty lines if there are any, else lines; at most `most`."""
    separator = _EMPTY_LINE if _EMPTY_LINE.search(text.strip()) else _LINE_BREAK
    return grouped(_cut(text, (match.end() for match in separator.finditer(text))), most)


def grouped(parts: Sequence[str], most: int) -> list[str]:
    """Join consecutive parts into at most `most` groups of about the same length."""
    if len(parts) <= most:
        return list(parts)
    each = sum(map(len, parts)) / most
    ends = accumulate(map(len, parts))
    numbered = [
        (min(most - 1, int((end - 1) / each)), part) for part, end in zip(parts, ends, strict=True)
    ]
    return [
        "".join(part for _, part in run) for _, run in groupby(numbered, key=lambda pair: pair[0])
    ]


def _between(text: str, before: frozenset[str], behind: frozenset[str]) -> tuple[str, str, str]:
    start, end = 0, len(text)
    while start < end and (text[start].isspace() or text[start] in before):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in behind):
        end -= 1
    return text[:start], text[start:end], text[end:]


def _outside(ends: Iterable[int], spans: Sequence[Span]) -> Iterator[int]:
    """Yield the ends that are not inside a span."""
    starts = [span.start for span in spans]
    for end in ends:
        before = bisect_left(starts, end) - 1
        if before < 0 or spans[before].end <= end:
            yield end


def _cut(text: str, ends: Iterable[int]) -> list[str]:
    places = sorted({0, *ends, len(text)})
    return [text[start:end] for start, end in pairwise(places)]
