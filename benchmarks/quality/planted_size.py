"""Planted errors of size: text missing, text added, text repeated, another text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pairs import Pair
from planting import UNSPACED, Kind, Material, Plant, Planted, as_one, blank, language, words


def _kept(
    chosen: Callable[[int, random.Random], Sequence[int]], separator: str | None = None
) -> Plant:
    """Keep the chosen ones of several texts."""

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        kept = [pairs[at].target for at in chosen(len(pairs), chance)]
        between = blank(pairs[0]) if separator is None else separator
        return Planted(as_one(pairs, separator), between.join(kept))

    return plant


def _all_but(
    at: Callable[[int, random.Random], Sequence[int]],
) -> Callable[[int, random.Random], list[int]]:
    def chosen(number: int, chance: random.Random) -> list[int]:
        lost = set(at(number, chance))
        return [each for each in range(number) if each not in lost]

    return chosen


def _any(number: int, chance: random.Random) -> Sequence[int]:
    return [chance.randrange(number)]


def _cut(share: float) -> Plant:
    def plant(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted:
        return Planted(pairs[0], pairs[0].target[: int(len(pairs[0].target) * share)])

    return plant


def _first_clause(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted | None:
    clauses = re.split("(?<=[,;，、،])", pairs[0].target, maxsplit=1)
    short = len(clauses) < 2 or len(clauses[0]) < len(pairs[0].target) / 4
    return None if short else Planted(pairs[0], clauses[1].strip())


def _other(fits: Callable[[Pair, Pair], bool]) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted | None:
        others = material.others(pairs[0].target_lang, chance, 40)
        found = [other for other in others if other != pairs[0] and fits(pairs[0], other)]
        return Planted(pairs[0], found[0].target) if found else None

    return plant


def _like_length(pair: Pair, other: Pair) -> bool:
    return abs(len(pair.target) - len(other.target)) < len(pair.target) / 10


def _with_numbers(pair: Pair, other: Pair) -> bool:
    return all(re.search(r"\d{2,}", each.source) for each in (pair, other)) and (
        re.findall(r"\d+", pair.source) != re.findall(r"\d+", other.source)
    )


def _swapped(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted:
    return Planted(as_one(pairs), as_one(pairs[::-1]).target)


def _tail(times: int) -> Plant:
    def plant(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted | None:
        parts = words(pairs[0].target)
        if len(parts) < 6 or language(pairs[0]) in UNSPACED:
            return None
        return Planted(pairs[0], " ".join([*parts, *parts[-3:] * times]))

    return plant


def _word(times: int) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        parts = words(pairs[0].target)
        long = [at for at, word in enumerate(parts) if len(word) > 4]
        if not long or language(pairs[0]) in UNSPACED:
            return None
        at = chance.choice(long)
        return Planted(pairs[0], " ".join([*parts[:at], *[parts[at]] * times, *parts[at + 1 :]]))

    return plant


def _twice(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted:
    return Planted(pairs[0], pairs[0].target + blank(pairs[0]) + pairs[0].target)


def _sentence(times: int) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted:
        at = chance.randrange(len(pairs))
        repeated = [*pairs[:at], *[pairs[at]] * times, *pairs[at:]]
        return Planted(as_one(pairs), as_one(repeated).target)

    return plant


def _continued(factor: float) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted:
        good = as_one(pairs)
        more = material.others(pairs[0].target_lang, chance, 40)
        text = as_one([*pairs, *more]).target
        return Planted(good, text[: int(len(good.target) * factor)])

    return plant


def _invented(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted:
    texts = list(pairs)
    for other in material.others(pairs[0].target_lang, chance, 4):
        texts.insert(chance.randrange(len(texts)), other)
    return Planted(as_one(pairs), as_one(texts).target)


def _kinds() -> Iterator[Kind]:
    middle = _all_but(lambda number, _: range(number // 4, number - number // 4))
    yield Kind("middle half of 8 sentences missing", _kept(middle), size=8)
    yield Kind("middle half missing, blank lines", _kept(middle, "\n\n"), size=8)
    yield Kind("last half of 8 sentences missing", _kept(lambda n, _: range(n // 2)), size=8)
    for lost in (3, 2, 1):
        yield Kind(
            f"last {lost} of 8 sentences missing",
            _kept(lambda n, _, lost=lost: range(n - lost)),
            size=8,
        )
    yield Kind("last of 2 sentences missing", _kept(lambda *_: [0]), size=2)
    yield Kind("first of 2 sentences missing", _kept(lambda *_: [1]), size=2)
    yield Kind("middle of 3 sentences missing", _kept(lambda *_: [0, 2]), size=3)
    for share in (50, 70, 90):
        yield Kind(f"cut at {share} %", _cut(share / 100))
    yield Kind("1 of 8 lines missing", _kept(_all_but(_any), "\n"), size=8)
    yield Kind("1 of 8 paragraphs missing", _kept(_all_but(_any), "\n\n"), size=8)
    yield Kind("first clause missing", _first_clause)
    yield Kind("translation of another text", _other(lambda *_: True))
    yield Kind("translation of another text, same length", _other(_like_length))
    yield Kind("translation of another text, numbers", _other(_with_numbers))
    yield Kind("sentences swapped", _swapped, size=3)
    for times in (2, 3, 4, 5):
        yield Kind(f"last 3 words {times} times more", _tail(times))
    for times in (2, 3, 5, 7):
        yield Kind(f"a word {times} times", _word(times))
    yield Kind("whole answer twice", _twice)
    for times in (1, 2, 3, 4):
        yield Kind(f"1 of 8 sentences {times} times more", _sentence(times), size=8)
    for factor in (1.3, 1.5, 1.8, 2.2, 2.8, 3.5):
        yield Kind(f"goes on, {factor} times as long", _continued(factor), size=3)
    yield Kind("4 invented sentences among 8", _invented, size=8)


KINDS: Final = tuple(_kinds())
