"""Samples to train with: one pair, several joined, a template, or invented text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .augment import augmented, from_template
from .corpus import Example, Pair

OTHERS = ("de", "fr", "es", "ja")
SHARE_JOINED, SHARE_NEWLINES, MOST_JOINED = 0.30, 0.25, 8
SHARE_PIVOT, SHARE_TEMPLATE = 0.05, 0.025
SHARE_INTO_REAL = 0.70
"""Share of the drawn synthetic pairs whose source is the synthetic side."""
BALANCE = 0.7
"""Exponent of the number of pairs by which languages are drawn; 1 is proportional."""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A pair with one side written by an earlier model."""

    pair: Pair
    english_is_synthetic: bool


class Pool:
    """Training pairs, grouped so that a pair can be drawn for any direction."""

    def __init__(
        self, pairs: Sequence[Pair], synthetic: Sequence[Synthetic] = (), share: float = 0.0
    ) -> None:
        self._pairs = {code: [p for p in pairs if p.language == code] for code in OTHERS}
        self._synthetic: dict[tuple[str, bool], list[Pair]] = {
            (code, side): [] for code in OTHERS for side in (False, True)
        }
        for made in synthetic:
            self._synthetic[made.pair.language, made.english_is_synthetic].append(made.pair)
        self._share = share
        self._weights = [len(self._pairs[code]) ** BALANCE for code in OTHERS]
        self._pivots = _pivots(pairs)

    def draw(self, random: Random) -> Example:
        """One sample: a pair, or a text of up to eight pairs of the same direction."""
        source_lang, target_lang = self._direction(random)
        count = random.randint(2, MOST_JOINED) if random.random() < SHARE_JOINED else 1
        parts = [self._single(random, source_lang, target_lang) for _ in range(count)]
        return joined(parts, random) if count > 1 else parts[0]

    def _direction(self, random: Random) -> tuple[str, str]:
        if self._pivots and random.random() < SHARE_PIVOT:
            first, second = random.sample(random.choice(self._pivots), 2)
            return first.language, second.language
        other = random.choices(OTHERS, self._weights)[0]
        return ("en", other) if random.random() < 0.5 else (other, "en")

    def _single(self, random: Random, source_lang: str, target_lang: str) -> Example:
        if random.random() < SHARE_TEMPLATE:
            return from_template(random, source_lang, target_lang)
        if "en" not in (source_lang, target_lang):
            return augmented(self._pivot(random, source_lang, target_lang), random)
        pair = self._pair(random, source_lang, target_lang)
        if source_lang == "en":
            return augmented(Example(pair.english, pair.other, "en", target_lang), random)
        return augmented(Example(pair.other, pair.english, source_lang, "en"), random)

    def _pair(self, random: Random, source_lang: str, target_lang: str) -> Pair:
        language = target_lang if source_lang == "en" else source_lang
        if random.random() < self._share:
            into_real = random.random() < SHARE_INTO_REAL
            made = self._synthetic[language, (source_lang == "en") == into_real]
            if made:
                return random.choice(made)
        return random.choice(self._pairs[language])

    def _pivot(self, random: Random, source_lang: str, target_lang: str) -> Example:
        while True:
            group = {pair.language: pair.other for pair in random.choice(self._pivots)}
            if source_lang in group and target_lang in group:
                return Example(group[source_lang], group[target_lang], source_lang, target_lang)


def joined(parts: Sequence[Example], random: Random) -> Example:
    """Join examples of one direction into one text, by spaces or (a quarter) newlines."""
    first = parts[0]
    line = random.choice(("\n", "\n\n")) if random.random() < SHARE_NEWLINES else ""
    languages = (first.source_lang, first.target_lang)
    seams = {code: line or ("" if code == "ja" else " ") for code in languages}
    return Example(
        seams[first.source_lang].join(part.source for part in parts),
        seams[first.target_lang].join(part.target for part in parts),
        first.source_lang,
        first.target_lang,
    )


def _pivots(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Return pairs grouped by English sentence, with two languages or more, one pair each."""
    groups: dict[str, dict[str, Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.english, {})[pair.language] = pair
    return [list(group.values()) for group in groups.values() if len(group) > 1]
