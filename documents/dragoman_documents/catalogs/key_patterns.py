"""Which keys of JSON and YAML a user has selected."""

from __future__ import annotations

from collections.abc import Sequence


def is_selected(path: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether a path of keys matches one of the patterns; without patterns all do.

    `*` stands for one key or index, `**` for any number: `pages.*.title`, `**.label`.
    """
    if not patterns:
        return True
    return any(_matches(path, pattern.split(".")) for pattern in patterns)


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Compare from left to right, with the places that the pattern may have reached."""
    reached = _skipped({0}, pattern)
    for key in path:
        reached = _skipped(
            {
                place + (pattern[place] != "**")
                for place in reached
                if place < len(pattern) and pattern[place] in ("*", "**", key)
            },
            pattern,
        )
    return len(pattern) in reached


def _skipped(places: set[int], pattern: Sequence[str]) -> set[int]:
    """Return the places, and those behind each `**`, which may stand for nothing."""
    found = set(places)
    for place in sorted(places):
        behind = place
        while behind < len(pattern) and pattern[behind] == "**":
            behind += 1
            found.add(behind)
    return found
