"""The source's own spelling of characters and line breaks, for translations that still have them.

A translation is decoded text on one line. Its source may have spelled a character as a reference
or an escape (`&nbsp;`, `\\u2026`, `\\*`) and wrapped its lines. What is still there is written the
same way, so a text that did not change gives the bytes of its source.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple

from dragoman_documents.inline_codes import plain

_NEWLINE: Final = re.compile(r"[\r\n]")
_AFTER_BLANK: Final = re.compile(r"(?<=[ \t\n])")
_BLANK: Final = re.compile(r" ")


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


class _Break(NamedTuple):
    place: int
    """Of the blank it stands for in the source's text, or of the character after it."""
    blank: bool
    """Whether it stands for a blank; a continued line (`\\` at its end) stands for nothing."""
    raw: str


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
        odd: dict[str, dict[int, str]] = {}
        texts: list[str] = []
        place = 0
        for text, raw in pieces:
            if text in ("", " ") and _NEWLINE.search(raw):
                self._breaks.append(_Break(place, bool(text), raw))
            elif text and default(text) != raw:
                for start, some, spelled in _split(text, raw):
                    if default(some) != spelled:
                        odd.setdefault(some, {})[place + start] = spelled
            texts.append(text)
            place += len(text)
        self.text: Final = "".join(texts)
        """The source, decoded and without tags."""
        self._pattern = _any_of(odd)
        self._spelled = self._occurrences(odd) if odd else {}

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
        for match in self._matches(self.text, {each.place for each in self._breaks if each.blank}):
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
        behind = [match.start() for match in _AFTER_BLANK.finditer(text)]
        last = -2
        for each in self._breaks:
            places = blanks if each.blank else behind
            place = self._nearest(each, places, last, text)
            if place is not None:
                yield Kept(place, place + each.blank, each.raw)
                last = place

    def _nearest(self, each: _Break, places: Sequence[int], last: int, text: str) -> int | None:
        """Return the place behind `last` for a break; None if it is left out."""
        if self._is_between_the_same(each.place, text) and each.place > last:
            return each.place
        ideal = each.place * len(text) / max(1, len(self.text))
        index = bisect_left(places, ideal)
        near = [at for at in places[max(0, index - 1) : index + 1] if at > last + 1]
        if not near:
            index = bisect_left(places, last + 2)
            near = list(places[index : index + 1])
        return min(near, key=lambda at: abs(at - ideal), default=None)

    def _is_between_the_same(self, place: int, text: str) -> bool:
        """Return whether a translation has a place between the characters that its source has."""
        around = slice(max(0, place - 1), place + 1)
        return len(text) == len(self.text) and text[around] == self.text[around]


class _Keeping:
    """Spells the texts of one translation, one after the other."""

    def __init__(self, kept: Sequence[Kept], default: Callable[[str], str]) -> None:
        self._kept = kept
        self._default = default
        self._next = 0
        self._place = 0

    def spelled(self, text: str) -> str:
        """Return the next text as the source would spell it."""
        parts: list[str] = []
        done, end = self._place, self._place + len(text)
        while self._next < len(self._kept) and self._kept[self._next].start < end:
            each = self._kept[self._next]
            self._next += 1
            if done <= each.start and each.end <= end:
                parts += (
                    self._default(text[done - self._place : each.start - self._place]),
                    each.raw,
                )
                done = each.end
        parts.append(self._default(text[done - self._place :]))
        self._place = end
        return "".join(parts)


def _split(text: str, raw: str) -> Iterator[tuple[int, str, str]]:
    """Yield a piece by characters if it is spelled as it is, else whole."""
    if text == raw:
        yield from ((index, each, each) for index, each in enumerate(text))
    else:
        yield 0, text, raw


def _any_of(keys: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted((re.escape(each) for each in keys), key=len, reverse=True)
    return re.compile("|".join(longest_first))
