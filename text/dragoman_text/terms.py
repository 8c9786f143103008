"""Search for many terms at once: as whole words, in one pass over the text, in linear time.

A text is a row of tokens: words, and single characters between them or of a script without spaces.
A term is a row of tokens too, so it can only be found as whole words. The rows are matched by the
algorithm of Aho and Corasick, over tokens instead of characters: an index of 100,000 terms has few
states, and a text of a hundred words takes a hundred steps.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from dragoman_text.composing import composed

_WRITTEN_WITHOUT_SPACES: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, and Korean, whose particles join the noun."""

MARK: Final = "\ud800"
"""Between tokens. No text has it: UTF-8 cannot express a lone surrogate."""
_CACHED_CHARACTERS: Final = 8_192


_Fold = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of a glossary: in a translation, any of the `targets` complies."""

    source: str
    targets: tuple[str, ...]
    case_sensitive: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A term at ``text[start:end]``."""

    start: int
    end: int
    term: Term


class _Place(NamedTuple):
    start: int
    end: int
    terms: tuple[Term, ...]


class TermIndex:
    """An index of terms. Immutable; safe to use from several threads.

    Terms are literal: they have no syntax. Blank terms occur nowhere. Case is ignored unless the
    term is case-sensitive. In a script without spaces, which shows no words, a term may be part of
    any row of characters.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        self._terms = tuple(terms)
        exact = [term for term in self._terms if term.case_sensitive]
        folded = [term for term in self._terms if not term.case_sensitive]
        searches = ((folded, _folded), (exact, composed))
        self._automata = [_Automaton(terms, fold) for terms, fold in searches if terms]

    def __len__(self) -> int:
        return len(self._terms)

    def find(self, text: str) -> tuple[Term, ...]:
        """Return the terms that occur in the text as whole words, the longest source first.

        Each is returned once. A term counts only where it is not part of a longer term.
        """
        found = dict.fromkeys(term for place in self._places(text) for term in place.terms)
        return tuple(sorted(found, key=lambda term: -len(term.source)))

    def occurrences(self, text: str) -> Iterator[Occurrence]:
        """Yield each occurrence, in order, except those inside a longer one; they may overlap."""
        for place in self._places(text):
            for term in place.terms:
                yield Occurrence(place.start, place.end, term)

    def _places(self, text: str) -> list[_Place]:
        return _outermost([place for each in self._automata for place in each.places(text)])


class _Automaton:
    """States of rows of tokens, each with the longest term that ends there.

    State 0 is the start. `_next` has the state behind each token, `_fail` the state of the longest
    row that ends with the same tokens, `_longest` the nearest state on that chain with terms.
    """

    def __init__(self, terms: Iterable[Term], fold: _Fold) -> None:
        self._fold = fold
        self._next: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._terms: dict[int, tuple[Term, ...]] = {}
        for term in terms:
            if state := self._state(_tokens(fold(term.source.strip()))):
                self._terms[state] = (*self._terms.get(state, ()), term)
        self._fail = [0] * len(self._next)
        self._longest = [0] * len(self._next)
        self._link()

    def places(self, text: str) -> list[_Place]:
        """Return the longest term that ends at each token, in order."""
        folded = self._fold(text)
        tokens = _tokens(folded)
        ends = self._ends(tokens)
        if not ends:
            return []
        behind = [0, *accumulate(map(len, tokens))]
        offsets = _offsets(text, folded, self._fold)
        places: list[_Place] = []
        for end, state in ends:
            start, stop = behind[end - self._depth[state]], behind[end]
            if _at_edge(offsets, start) and _at_edge(offsets, stop):
                places.append(_Place(offsets[start], offsets[stop], self._terms[state]))
        return places

    def _ends(self, tokens: Sequence[str]) -> list[tuple[int, int]]:
        """Return the places behind a term, in tokens, with the state of its longest term."""
        ends: list[tuple[int, int]] = []
        nexts, fail, longest = self._next, self._fail, self._longest
        state = 0
        for end, token in enumerate(tokens, start=1):
            while state and token not in nexts[state]:
                state = fail[state]
            state = nexts[state].get(token, 0)
            if found := longest[state]:
                ends.append((end, found))
        return ends

    def _state(self, row: Sequence[str]) -> int:
        """Return the state behind a row of tokens, with the states on the way to it."""
        state = 0
        for token in row:
            following = self._next[state].get(token)
            if following is None:
                following = len(self._next)
                self._next[state][token] = following
                self._next.append({})
                self._depth.append(self._depth[state] + 1)
            state = following
        return state

    def _link(self) -> None:
        """Fill `_fail` and `_longest`, the states of shorter rows first."""
        remaining = deque([0])
        while remaining:
            state = remaining.popleft()
            self._longest[state] = (
                state if state in self._terms else self._longest[self._fail[state]]
            )
            for token, following in self._next[state].items():
                shorter = self._fail[state]
                while shorter and token not in self._next[shorter]:
                    shorter = self._fail[shorter]
                if state:
                    self._fail[following] = self._next[shorter].get(token, 0)
                remaining.append(following)


class _Marked(dict[int, str | int]):
    """Table for `str.translate` that puts marks around each token, filled on first use."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        form = code if inside_word(character) else f"{MARK}{character}{MARK}"
        if len(self) < _CACHED_CHARACTERS:  # a text may have a million different characters
            self[code] = form
        return form


_MARKED: Final = _Marked()


def _tokens(folded: str) -> list[str]:
    """Return the words and the characters between them, in order; joined they are the text."""
    return [token for token in folded.translate(_MARKED).split(MARK) if token]


def marked(text: str) -> str:
    """Return the folded text with marks around each character at which a word may end."""
    return _folded(text).translate(_MARKED)


def _folded(text: str) -> str:
    return composed(text).casefold()


def inside_word(character: str) -> bool:
    """Return whether the character forms a word together with such neighbours."""
    if _WRITTEN_WITHOUT_SPACES.match(character):
        return False
    return unicodedata.category(character)[0] in "LMN" or character == "_"


def _offsets(text: str, folded: str, fold: _Fold) -> Sequence[int]:
    """Return the place in the text of each place in its folded copy.

    Characters that are folded together, or to several, share the place where they begin.
    """
    if len(folded) == len(text) and (text.isascii() or composed(text) == text):
        return range(len(text) + 1)
    offsets: list[int] = []
    begin = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and _joins(text[end]):
            continue
        part = text[begin:end]
        if composed(part) == part:
            for place in range(begin, end):
                offsets += [place] * len(fold(text[place]))
        else:
            offsets += [begin] * len(fold(part))
        begin = end
    return [*offsets, len(text)]


def _at_edge(offsets: Sequence[int], place: int) -> bool:
    """Return whether a place in the folded copy is between two characters of the text."""
    return place == 0 or offsets[place] != offsets[place - 1]


def _joins(character: str) -> bool:
    """Return whether the character may be composed with the one before it."""
    return "\u1160" <= character <= "\u11ff" or unicodedata.category(character)[0] == "M"


def _outermost(places: list[_Place]) -> list[_Place]:
    """Return the places that are not inside a longer one, in order."""
    outer: list[_Place] = []
    for place in sorted(places, key=lambda place: (place.start, -place.end)):
        inside = outer and place.end <= outer[-1].end and place[:2] != outer[-1][:2]
        if not inside:
            outer.append(place)
    return outer
