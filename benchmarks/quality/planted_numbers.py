"""Planted errors of numbers, and of words that turn a statement round."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pairs import Pair
from planting import Kind, Material, Plant, Planted, inserted

_NUMBER: Final = re.compile(r"(?<![\w.,])\d+(?:[.,\u00a0\u202f]\d+)*(?![\w])")


def _number(change: Callable[[str, random.Random], str | None], digits: int = 1) -> Plant:
    """Change a number that stands once in both texts, in the same digits."""

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        pair = pairs[0]
        numbers = _NUMBER.findall(pair.source)
        found = [
            each
            for each in _NUMBER.finditer(pair.target)
            if numbers.count(each[0]) == 1 and len(re.sub(r"\D", "", each[0])) >= digits
        ]
        for each in chance.sample(found, len(found)):
            by = change(each[0], chance)
            if by is not None and by != each[0] and by not in numbers:
                return Planted(pair, pair.target[: each.start()] + by + pair.target[each.end() :])
        return None

    return plant


def _digit(number: str, chance: random.Random) -> str:
    at = chance.choice([at for at, each in enumerate(number) if each.isdigit()])
    return number[:at] + str((int(number[at]) + chance.randint(1, 9)) % 10) + number[at + 1 :]


def _transposed(number: str, _chance: random.Random) -> str | None:
    swapped = re.sub(r"(\d)(\d)", lambda found: found[2] + found[1], number, count=1)
    return None if swapped.startswith("0") else swapped


def _times_ten(number: str, _chance: random.Random) -> str | None:
    """Return 10,000 for 1,000, with the number's own separators."""
    if not re.fullmatch(r"\d{1,3}([.,\u00a0\u202f])\d{3}(?:\1\d{3})*", number):
        return None
    mark = next(each for each in number if not each.isdigit())
    value = int(number.replace(mark, ""))
    return f"{value * 10:,}".replace(",", mark)


def _times_thousand(number: str, _chance: random.Random) -> str | None:
    ten = _times_ten(number, _chance)
    mark = next((each for each in number if not each.isdigit()), "")
    return None if ten is None else f"{number}{mark}000"


def _without_point(number: str, _chance: random.Random) -> str | None:
    return re.sub(r"\D", "", number) if re.fullmatch(r"\d+[.,]\d{1,2}", number) else None


def _single(by: str) -> Callable[[str, random.Random], str | None]:
    return lambda number, _chance: by if re.fullmatch("[2-9]", number) else None


def _extra(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
    answer = inserted(pairs[0].target, [str(chance.randint(13, 980))])
    return None if answer is None else Planted(pairs[0], answer)


def _magnitude(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted | None:
    for million, billion in (
        ("Millionen", "Milliarden"), ("millions", "milliards"), ("миллионов", "миллиардов"),
        ("milioni", "miliardi"), ("milhões", "bilhões"), ("miljoen", "miljard"), ("百万", "十亿"),
    ):  # fmt: skip
        if million in pairs[0].target:
            return Planted(pairs[0], pairs[0].target.replace(million, billion))
    return None


def _negation(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted | None:
    for word in (" nicht ", " не ", " nie ", " niet ", " inte ", " tidak ", " không ", " ei "):
        if pairs[0].target.count(word) == 1:
            return Planted(pairs[0], pairs[0].target.replace(word, " "))
    return None


def _kinds() -> Iterator[Kind]:
    changes: tuple[tuple[str, Callable[[str, random.Random], str | None], int], ...] = (
        ("one digit changed", _digit, 2),
        ("two digits transposed", _transposed, 2),
        ("last digit lost", lambda number, _: number[:-1], 3),
        ("number lost", lambda number, _: "", 2),
        ("zero appended", lambda number, _: number + "0" if number.isdigit() else None, 2),
        ("1,000 > 10,000", _times_ten, 4),
        ("1,000 > 1,000,000", _times_thousand, 4),
        ("7.5 > 75", _without_point, 2),
        ("3 > 7", lambda number, chance: _single("7" if number != "7" else "4")(number, chance), 1),
        (
            "3 > 30",
            lambda number, chance: f"{number}0" if re.fullmatch("[2-9]", number) else None,
            1,
        ),
    )
    for name, change, digits in changes:
        yield Kind(f"number: {name}", _number(change, digits))
    yield Kind("number: one more", _extra)
    yield Kind("number: million > billion in words", _magnitude)
    yield Kind("negation lost", _negation)


KINDS: Final = tuple(_kinds())
