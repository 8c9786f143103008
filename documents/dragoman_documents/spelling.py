"""The source's own spelling of characters and line breaks, for translations that still have them.

A translation is decoded text on one line. Its source may have spelled a character as a reference
or an escape (`&nbsp;`, `\\u2026`, `\\*`) and wrapped its lines. What is still there is written the
same way, so a text that did not change gives the bytes of its source.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Final, NamedTuple

from dragoman_documents.inline_codes import plain

_AFTER_BLANK: Final = re.compile(r"(?<=[ \t\n])")
_BLANK: Final = re.compile(r" ")
_AT_BREAK: Final = frozenset({"", " "})
_BETWEEN: Final = "\ue000"
"""Of private use: no text has it, and it is spelled as it is."""


def escapes(
    raw: str, pattern: re.Pattern[str], meaning: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text for `Spelling`: what matches is an escape, with its meaning."""
    end = 0
    for match in pattern.finditer(raw):
        if match.start() > end:
            yield raw[end : match.start()], raw[end : match.start()]
        yield meaning(match[0]), match[0]
        end = match.end()
    if end < len(raw):
        yield raw[end:], raw[end:]


class Kept(NamedTuple):
    """Characters `[start:end)` of a translation without tags, and how its source spells them."""

    start: int
    end: int
    raw: str


_Break = tuple[int, bool, str]
"""A line break: the place of the blank it stands for in the source's text, or of the character
after it; whether it stands for a blank (a continued line, `\\` at its end, stands for nothing); how
it is spelled."""


class Spelling:
    """How a source spells the characters of one text, and where it breaks its lines."""

    def __init__(
        self, pieces: Iterable[tuple[str, str]], default: Callable[[str], str] = str
    ) -> None:
        """Take a text in pieces, decoded and as spelled.

        A piece is characters that are spelled as they are, of any number, or one character (or the
        few of one reference) spelled otherwise, or a line break, decoded as a blank or as nothing.
        `default` spells decoded text where the source says nothing of it; it must be linear and
        must spell each character by itself.
        """
        self._default = default
        self._breaks: list[_Break] = []
        parts = list(pieces)
        texts = [text for text, _ in parts]
        places = list(accumulate(map(len, texts), initial=0))
        self.text: Final = "".join(texts)
        """The source, decoded and without tags."""
        odd: dict[str, dict[int, str]] = {}
        same: list[int] = []
        for index, (text, raw) in enumerate(parts):
            if text == raw:
                same.append(index)
            elif text in _AT_BREAK and ("\n" in raw or "\r" in raw):
                self._breaks.append((places[index], text == " ", raw))
            elif text and default(text) != raw:
                odd.setdefault(text, {})[places[index]] = raw
        for place, character in _odd([(places[at], texts[at]) for at in same], default):
            odd.setdefault(character, {})[place] = character
        self._pattern = _any_of(odd)
        self._spelled = self._occurrences(odd) if odd else {}

    @property
    def has_breaks_alone(self) -> bool:
        """Whether all characters are spelled as by default, so that only line breaks are kept."""
        return not self._spelled

    @property
    def is_as_it_is(self) -> bool:
        """Whether all of the source is spelled as `default` would spell it, on one line."""
        return not (self._breaks or self._spelled)

    def kept(self, text: str) -> list[Kept]:
        """Return what a translation, given without tags, keeps of the spelling, in order.

        The n-th occurrence of a character is spelled as that of the source if both have as many;
        otherwise all are, if the source spells it in one way alone. Linear in both texts, but for
        the logarithm of the number of blanks per break.
        """
        breaks = list(self._placed(text))
        return sorted([*breaks, *self._characters(text, breaks)]) if self._spelled else breaks

    def keeping(self, text: str) -> Callable[[str], str]:
        """Return the `escape` for `inline_codes.rendered` of a translation with these tags.

        It is called with the texts between the tags in their order.
        """
        kept = self.kept(plain(text))
        if not kept:
            return self._default
        return _Keeping(kept, self._default).spelled

    def spelled(self, text: str) -> str:
        """Return a whole translation as the source would spell it.

        It has no inline codes; what looks like one is text.
        """
        return _Keeping(self.kept(text), self._default).spelled(text)

    def _characters(self, text: str, breaks: Sequence[Kept]) -> Iterator[Kept]:
        taken = {each.start for each in breaks if each.end > each.start}
        found = list(self._matches(text, taken))
        counts = Counter(match[0] for match in found)
        ways = {some: self._ways(some, count) for some, count in counts.items()}
        for match in found:
            raw = next(ways[match[0]], None)
            if raw is not None:
                yield Kept(match.start(), match.end(), raw)

    def _ways(self, some: str, count: int) -> Iterator[str]:
        """Yield the spelling of each occurrence in a translation, if the source says it."""
        spelled = self._spelled[some]
        if count == len(spelled):
            return iter(spelled)
        return repeat(spelled[0]) if len(set(spelled)) == 1 else iter(())

    def _occurrences(self, odd: Mapping[str, Mapping[int, str]]) -> dict[str, list[str]]:
        """Return the spellings of all characters that the source spells otherwise somewhere."""
        spelled: dict[str, list[str]] = {some: [] for some in odd}
        for match in self._matches(self.text, {place for place, blank, _ in self._breaks if blank}):
            raw = odd[match[0]].get(match.start())
            each = enumerate(match[0], match.start())
            parts = (odd.get(one, {}).get(at) or self._default(one) for at, one in each)
            spelled[match[0]].append("".join(parts) if raw is None else raw)
        return spelled

    def _matches(self, text: str, taken: Container[int]) -> Iterator[re.Match[str]]:
        """Yield the occurrences of these characters that are no line breaks."""
        return (each for each in self._pattern.finditer(text) if each.start() not in taken)

    def _placed(self, text: str) -> Iterator[Kept]:
        """Yield the line breaks, each at the blank nearest to its share of the text."""
        if not self._breaks:
            return
        blanks = [match.start() for match in _BLANK.finditer(text)]
        all_blank = all(blank for _, blank, _ in self._breaks)
        behind = [] if all_blank else [match.start() for match in _AFTER_BLANK.finditer(text)]
        share = len(text) / max(1, len(self.text))
        last = -2
        for place, blank, raw in self._breaks:
            if place > last and self._is_between_the_same(place, text):
                yield Kept(place, place + blank, raw)
                last = place
                continue
            at = _nearest(blanks if blank else behind, place * share, last + 1)
            if at is not None:
                yield Kept(at, at + blank, raw)
                last = at

    def _is_between_the_same(self, place: int, text: str) -> bool:
        """Return whether a translation has a place between the characters that its source has."""
        around = slice(max(0, place - 1), place + 1)
        return len(text) == len(self.text) and text[around] == self.text[around]


def _nearest(places: Sequence[int], ideal: float, last: int) -> int | None:
    """Return the one of sorted places behind `last` that is nearest to an ideal one."""
    first = bisect_right(places, last)
    index = bisect_left(places, ideal, first)
    if index == len(places):
        return places[-1] if index > first else None
    is_before = index > first and ideal - places[index - 1] <= places[index] - ideal
    return places[index - 1] if is_before else places[index]


class _Keeping:
    """Spells the texts of one translation, one after the other."""

    def __init__(self, kept: Sequence[Kept], default: Callable[[str], str]) -> None:
        self._kept = kept
        self._default = default
        self._next = 0
        self._place = 0

    def spelled(self, text: str) -> str:
        """Return the next text as the source would spell it."""
        start, end = self._place, self._place + len(text)
        self._place = end
        parts: list[str] = []
        raws: list[str] = []
        done, index, kept = start, self._next, self._kept
        while index < len(kept) and kept[index][0] < end:
            first, last, raw = kept[index]
            index += 1
            if done <= first and last <= end:
                parts.append(text[done - start : first - start])
                raws.append(raw)
                done = last
        self._next = index
        if not raws:
            return self._default(text)
        parts.append(text[done - start :])
        return "".join(
            chain.from_iterable(zip(_spelled(parts, self._default), [*raws, ""], strict=True))
        )


def _spelled(texts: Sequence[str], default: Callable[[str], str]) -> Sequence[str]:
    """Return texts as they are spelled; all at once, if what stands between them stays."""
    if len(texts) > 1:
        found = default(_BETWEEN.join(texts)).split(_BETWEEN)
        if len(found) == len(texts):
            return found
    return list(map(default, texts))


def _odd(
    texts: Sequence[tuple[int, str]], default: Callable[[str], str]
) -> Iterator[tuple[int, str]]:
    """Yield the characters that `default` spells otherwise than texts that are as they are."""
    whole = _BETWEEN.join([text for _, text in texts])
    if default(whole) == whole:
        return
    found = sorted(set().union(*(text for _, text in texts)))
    spellings = zip(found, _spelled(found, default), strict=True)
    wanted = {character for character, spelling in spellings if character != spelling}
    for place, text in texts if wanted else ():
        yield from ((place + at, each) for at, each in enumerate(text) if each in wanted)


def _any_of(keys: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted((re.escape(each) for each in keys), key=len, reverse=True)
    return re.compile("|".join(longest_first))
