"""Splitting of texts into pieces that fit and can be translated separately and rejoined."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]

from dragoman_text.spans import find_spans

Fits = Callable[[str], bool]

_BLOCK: Final = 2_000
"""Characters that sentencex is given at once: at most 8,000 bytes of its limit of 10 KiB."""

# ASCII punctuation ends a clause only before a blank: "1,000" and "12:30" are not split.
_CLAUSE: Final = re.compile(r"(?:[,;:…—–،؛](?=\s)|[、，；：。！？]|[།༎၊။])\s*|\n+\s*")
_BLANKS: Final = re.compile(r"\s+")
_BLANK: Final = re.compile(r"\s+|\u200b")
_IDEOGRAPHS: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(
    # Behind an ideograph or kana, before an ideograph or a kana that is not small.
    rf"(?<=[\u3005-\u3007\u3040-\u30ff{_IDEOGRAPHS}])"
    rf"(?=[{_IDEOGRAPHS}\u3042-\u3094\u30a2-\u30f4])(?![ぅぇぉっゃゅょゎゥェォッャュョヮ])"
    # Thai and Lao: before a leading vowel, or before a consonant without one.
    r"|(?<=[\u0e01-\u0eff])(?<![\u0e40-\u0e44\u0ec0-\u0ec4])"
    r"(?=[\u0e01-\u0e2e\u0e40-\u0e44\u0e81-\u0eae\u0ec0-\u0ec4])"
    # Burmese, Khmer: before a consonant that is neither stacked nor closes a syllable.
    r"|(?<=[\u1000-\u109f])(?<!\u1039)(?=[\u1000-\u1021](?![\u1039\u103a]))"
    r"|(?<=[\u1780-\u17ff])(?<!\u17d2)(?=[\u1780-\u17a2])"
    # Tibetan: behind the mark between syllables.
    r"|(?<=\u0f0b)(?=[\u0f40-\u0f6c])"
)
"""Where a text without blanks is split, if nothing else is left: between words or inside one."""

_DATA: Final = r"A-Za-z0-9+/=_%\-"
_STRETCH: Final = re.compile(
    rf"(?:data:[\w.+\-]{{1,100}}/[\w.+;=\-]{{0,100}},)?(?<![\w{_DATA}])[{_DATA}]{{200,}}+(?!\w)"
    r"|(?<![^\w\s])[^\w\s]{16,}"
)
"""What no one can cut: base64, percent-encoded or hexadecimal data, a run of emoji or of rules."""
_APART: Final = frozenset({"code", "tag", "term", "url"})
"""Kinds of spans at whose edges a text is split, if nothing else is left."""


def split_sentences(text: str, lang: str, terms: Sequence[str] = ()) -> list[str]:
    """Return the sentences of ``text``, each with its trailing blanks; joined they are ``text``.

    ``lang`` is a BCP-47 tag; without rules for it, those of a related language apply. Text in
    scripts that do not mark sentence ends (Thai, Khmer) is returned as one sentence. No sentence
    ends inside a protected span (``find_spans`` with ``terms``).
    """
    ends = _behind_blanks(text, _sentence_ends(text, lang))
    return _cut(text, _outside_spans(text, ends, terms))


def _sentence_ends(text: str, lang: str) -> Iterator[int]:
    """Yield where sentences end, in time linear in the text.

    sentencex takes quadratic time in a paragraph of opening quotes (0.7 s for 128 KiB), and its
    list of sentences lacks the paragraph breaks at which it cuts a text of more than 10 KiB. So it
    is given less at once, each time from the last end that it found.
    """
    start = 0
    while start < len(text):
        block = text[start : start + _BLOCK]
        last = start + len(block) == len(text)
        ends = [boundary["end_index"] for boundary in get_sentence_boundaries(lang, block)]
        if not last:  # the last sentence may go on behind the block
            ends = [end for end in ends if end < len(block)]
        yield from (start + end for end in ends)
        start += max(ends, default=len(block))


def pack(pieces: Iterable[str], fits: Fits, terms: Sequence[str] = ()) -> list[str]:
    """Return the chunks of `packed` as a list."""
    return list(packed(pieces, fits, terms))


def packed(pieces: Iterable[str], fits: Fits, terms: Sequence[str] = ()) -> Iterator[str]:
    """Join consecutive pieces into the longest chunks that fit; nothing is lost or reordered.

    A piece that does not fit is split at clauses, then at blanks, then between syllables of a
    script without blanks, at last around data, tags and links, never inside a protected span
    (``find_spans`` with ``terms``). A piece that cannot be split is yielded unchanged, although it
    does not fit. If ``fits`` holds for a
    text, it must hold for every part of it.
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
    for pattern in (_CLAUSE, _BLANK, _WORD):
        ends = [match.end() for match in pattern.finditer(part)]
        smaller = _cut(part, _outside_spans(part, ends, terms))
        if len(smaller) > 1:
            return smaller
    smaller = _cut(part, _edges(part, terms))
    return smaller if len(smaller) > 1 else None


def _edges(part: str, terms: Sequence[str]) -> list[int]:
    """Return where data, tags and links begin and end; none in a part that is data throughout."""
    if _STRETCH.fullmatch(part.strip()):
        return []
    ends = [place for match in _STRETCH.finditer(part) for place in match.span()]
    spans = [span for span in find_spans(part, terms) if span.kind in _APART]
    return _outside_spans(part, ends, terms) + [
        place for span in spans for place in (span.start, span.end)
    ]


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


def _outside_spans(text: str, places: Iterable[int], terms: Sequence[str]) -> list[int]:
    spans = find_spans(text, terms)
    if not spans:
        return list(places)
    starts = [span.start for span in spans]

    def inside(place: int) -> bool:
        before = bisect_left(starts, place) - 1
        return before >= 0 and place < spans[before].end

    return [place for place in places if not inside(place)]


def _behind_blanks(text: str, ends: Iterable[int]) -> Iterator[int]:
    """Yield each end behind the blanks that follow it; those inside the blanks are passed over."""
    behind = 0
    for end in ends:
        if end > behind:
            blank = _BLANKS.match(text, end)
            behind = blank.end() if blank else end
            yield behind


def _cut(text: str, ends: Iterable[int]) -> list[str]:
    places = sorted({0, *ends, len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    return [piece for piece in pieces if piece]
