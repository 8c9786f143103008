"""What planted errors are made of: kinds, the texts they are planted into, cuts of texts."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pairs import Pair

from dragoman_text.spans import find_spans

Base = Literal["sentence", "message", "into English"]

_LANGUAGES: Final = (
    "de fr es pt-BR it nl pl cs ru uk tr ar he fa hi ja ko zh-Hans zh-Hant th vi id sw ta am ka el "
    "hu fi sv"
)
_LATIN: Final = "de fr es pt it nl pl cs tr vi id sw hu fi sv"
LANGUAGES: Final = frozenset(_LANGUAGES.split())
"""Target languages of sentences, 30 in 15 scripts."""
UNSPACED: Final = frozenset({"zh", "ja", "yue", "th", "km", "lo", "my"})
LATIN: Final = frozenset(_LATIN.split())
PLACEHOLDERS: Final = frozenset({"printf", "brace", "mustache", "template"})
OWN: Final = "own"
"""Corpus of texts that were written for a kind."""
_SHORTEST: Final = 40
_ENOUGH: Final = 3000
"""Pairs of one language."""
_TOKEN: Final = re.compile(r"\d[\d.,]*\d|[A-Z][A-Za-z]{3,}")
_HAN: Final = re.compile("(?<=[\u3041-\u9fff])(?=[\u3041-\u9fff])")


@dataclass(frozen=True, slots=True)
class Planted:
    """A pair of which the gates say nothing, and its answer with the error."""

    good: Pair
    bad: str
    joined: bool = False
    """Whether the answer was put together from pieces that were judged before."""


Plant = Callable[[Sequence[Pair], random.Random, "Material"], Planted | None]
"""Plants an error into as many pairs of one language as its kind wants; None if it cannot."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of error, and how it is planted."""

    name: str
    plant: Plant
    base: Base = "sentence"
    size: int = 1
    """Pairs that one error is planted into."""
    held_out: bool = False
    """Whether its wordings are kept from those who write the rules."""
    right: bool = False
    """Whether the answer is right, so that every finding is a false alarm."""


class Material:
    """The pairs that errors are planted into."""

    def __init__(self, pairs: Iterable[Pair], chance: random.Random) -> None:
        """Sort the pairs by what they are good for."""
        self._bases: dict[Base, dict[str, list[Pair]]] = {
            base: defaultdict(list) for base in ("sentence", "message", "into English")
        }
        self._parallel: dict[str, dict[str, str]] = defaultdict(dict)
        for pair in pairs:
            if pair.source_lang == "en":
                self._parallel[pair.source].setdefault(pair.target_lang, pair.target)
            other = pair.source_lang if pair.target_lang == "en" else pair.target_lang
            if (base := _base(pair)) and len(self._bases[base][other]) < _ENOUGH:
                self._bases[base][other].append(pair)
        for groups in self._bases.values():
            for group in groups.values():
                chance.shuffle(group)

    def groups(self, base: Base, size: int) -> Iterable[tuple[Pair, ...]]:
        """Yield groups of that many pairs of one language each, from all languages in turn."""
        pools = [pool for _, pool in sorted(self._bases[base].items())]
        for start in range(0, max(map(len, pools), default=0), size):
            for pool in pools:
                if start + size <= len(pool):
                    yield tuple(pool[start : start + size])

    def in_language(self, source: str, language: str) -> str | None:
        """Return the human translation of an English source into another language."""
        return self._parallel[source].get(language) if source in self._parallel else None

    def others(self, language: str, chance: random.Random, number: int) -> list[Pair]:
        """Return random sentences of the same target language."""
        return chance.sample(self._bases["sentence"][language], number)


def _base(pair: Pair) -> Base | None:
    into_english = pair.target_lang == "en"
    if not into_english and (pair.source_lang != "en" or pair.target_lang not in LANGUAGES):
        return None
    kinds = {span.kind for span in find_spans(pair.source)}
    if kinds & PLACEHOLDERS:
        return None if into_english else "message"
    if kinds or len(pair.source) < _SHORTEST or "\n" in pair.source + pair.target:
        return None
    return "into English" if into_english else "sentence"


# --- texts --------------------------------------------------------------------------------------


def language(pair: Pair) -> str:
    """Return the base language of the answer."""
    return pair.target_lang.partition("-")[0]


def is_latin(pair: Pair) -> bool:
    """Return whether the answer is in Latin letters."""
    return language(pair) in LATIN


def changed(pair: Pair, source: str, target: str) -> Pair:
    """Return the pair with other texts."""
    return Pair(pair.corpus, source, target, pair.source_lang, pair.target_lang)


def blank(pair: Pair) -> str:
    """Return what stands between two sentences of the target language."""
    return "" if language(pair) in {"zh", "ja", "yue"} else " "


def as_one(pairs: Sequence[Pair], separator: str | None = None) -> Pair:
    """Return one pair of all texts, in a paragraph or between separators."""
    between = blank(pairs[0]) if separator is None else separator
    return changed(
        pairs[0],
        (" " if separator is None else separator).join(pair.source for pair in pairs),
        between.join(pair.target for pair in pairs),
    )


def joined_targets(pairs: Sequence[Pair], targets: Iterable[str], separator: str | None) -> str:
    """Return answers put together as `as_one` does."""
    return (blank(pairs[0]) if separator is None else separator).join(targets)


def words(text: str) -> list[str]:
    """Return the text between its blanks."""
    return text.split()


def shared_token(pair: Pair, chance: random.Random) -> str | None:
    """Return a name or a number that stands once in both texts."""
    found = [
        token
        for token in _TOKEN.findall(pair.source)
        if pair.source.count(token) == 1 == pair.target.count(token)
    ]
    return chance.choice(found) if found else None


def inserted(text: str, items: Sequence[str]) -> str | None:
    """Return the text with the items between its words, in their order; None if it is too short."""
    parts = words(text)
    between = " "
    if len(parts) < 2 * len(items) + 2:
        parts, between = _HAN.split(text), ""
    if len(parts) < 2 * len(items) + 2:
        return None
    step = len(parts) // (len(items) + 1)
    for at, item in reversed(list(enumerate(items, 1))):
        parts.insert(at * step, item)
    return between.join(parts)


def with_items(pair: Pair, good: Sequence[str], bad: Sequence[str]) -> Planted | None:
    """Return the pair with items in both texts, and an answer with other items."""
    source, target, answer = (
        inserted(pair.source, good),
        inserted(pair.target, good),
        inserted(pair.target, bad),
    )
    if source is None or target is None or answer is None:
        return None
    return Planted(changed(pair, source, target), answer.replace("  ", " "))


def right(plant: Plant) -> Plant:
    """Take the pair without the error for the answer."""

    def planted(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted | None:
        found = plant(pairs, chance, material)
        return None if found is None else Planted(found.good, found.good.target)

    return planted
