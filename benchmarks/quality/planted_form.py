"""Planted errors of form: lines, lists, tables, paragraphs, hidden characters, no text at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pairs import Pair
from planting import Kind, Material, Plant, Planted, as_one, changed, right

_CONTROL: Final = (
    "<end_of_turn>",
    "<|im_end|>",
    "</s>",
    "\ufffd",
    "\u202e",
    "\x00",
    "▁",
    "<extra_0>",
)


def _lines(
    prefix: str, change: Callable[[list[str], random.Random], str], joined: bool = False
) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted:
        sources, targets = (
            [prefix + text for text in texts]
            for texts in ([pair.source for pair in pairs], [pair.target for pair in pairs])
        )
        good = changed(pairs[0], "\n".join(sources), "\n".join(targets))
        return Planted(good, change(targets, chance), joined)

    return plant


def _one_line_lost(lines: list[str], chance: random.Random) -> str:
    at = chance.randrange(len(lines))
    return "\n".join(lines[:at] + lines[at + 1 :])


def _two_joined(lines: list[str], chance: random.Random) -> str:
    at = chance.randrange(len(lines) - 1)
    return "\n".join([*lines[:at], f"{lines[at]} {lines[at + 1]}", *lines[at + 2 :]])


def _all_joined(lines: list[str], _chance: random.Random) -> str:
    return " ".join(lines)


def _table(change: Callable[[list[str], random.Random], str], joined: bool) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        if any("|" in pair.source + pair.target for pair in pairs):
            return None
        rows = [
            [f"| {at} | {text} |" for at, text in enumerate(texts, 101)]
            for texts in ([pair.source for pair in pairs], [pair.target for pair in pairs])
        ]
        head = ["| No. | Text |", "| --- | --- |"]
        good = changed(pairs[0], "\n".join(head + rows[0]), "\n".join(head + rows[1]))
        return Planted(good, "\n".join([*head, change(rows[1], chance)]), joined)

    return plant


def _bars_lost(rows: list[str], chance: random.Random) -> str:
    at = chance.randrange(len(rows))
    return "\n".join([*rows[:at], rows[at].strip("| ").replace(" | ", " "), *rows[at + 1 :]])


def _paragraphs_merged(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted:
    return Planted(as_one(pairs, "\n\n"), as_one(pairs).target)


def _pair_lost_across(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted:
    """Lose a pair of tags whose halves were in two pieces."""
    good = as_one(pairs)
    return Planted(
        changed(good, f"<b>{good.source}</b>", f"<b>{good.target}</b>"), good.target, True
    )


def _anywhere(choices: Sequence[str]) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted:
        at = chance.randint(0, len(pairs[0].target))
        text = pairs[0].target
        return Planted(pairs[0], text[:at] + chance.choice(choices) + text[at:])

    return plant


def _blanked(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted:
    return Planted(pairs[0], chance.choice(["", " \n", "...", "\u200b", "123", "🙂", "N/A"]))


def _one_text(separator: str | None) -> Plant:
    return lambda pairs, _chance, _material: Planted(
        as_one(pairs, separator), as_one(pairs, separator).target
    )


def _kinds() -> Iterator[Kind]:
    yield from _line_kinds()
    yield Kind("right: 8 sentences", _one_text(None), size=8, right=True)
    yield Kind("right: 8 lines", _one_text("\n"), size=8, right=True)
    yield Kind("right: 8 paragraphs", _one_text("\n\n"), size=8, right=True)
    yield Kind("right: 8 list items", right(_lines("- ", _one_line_lost)), size=8, right=True)
    yield Kind("right: 8 rows of a table", right(_table(_one_line_lost, False)), size=8, right=True)
    yield Kind("control token or character", _anywhere(_CONTROL))
    yield Kind("tag characters U+E0000", _anywhere(["\U000e0041\U000e0042\U000e0043"]))
    yield Kind("500 line breaks", _anywhere(["\n" * 500]))
    yield Kind("no letters", _blanked)


def _line_kinds() -> Iterator[Kind]:
    for prefix, name in (("- ", "list item"), ("", "line")):
        yield Kind(f"1 of 8 {name}s lost", _lines(prefix, _one_line_lost), size=8)
        yield Kind(f"2 of 8 {name}s joined", _lines(prefix, _two_joined), size=8)
        yield Kind(f"all {name}s joined", _lines(prefix, _all_joined), size=8)
        yield Kind(
            f"1 of 8 {name}s lost, joined pieces", _lines(prefix, _one_line_lost, True), size=8
        )
        yield Kind(f"all {name}s joined, joined pieces", _lines(prefix, _all_joined, True), size=8)
    for joined, name in ((False, ""), (True, ", joined pieces")):
        yield Kind(f"1 of 8 rows of a table lost{name}", _table(_one_line_lost, joined), size=8)
        yield Kind(f"bars of a row lost{name}", _table(_bars_lost, joined), size=8)
    yield Kind("pair of tags lost across pieces", _pair_lost_across, size=8)
    yield Kind("paragraphs merged", _paragraphs_merged, size=4)


KINDS: Final = tuple(_kinds())
