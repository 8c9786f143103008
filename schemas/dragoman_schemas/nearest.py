"""Hints for a name that is not known: the nearest one that is, and all that can be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

_LONGEST_NAME: Final = 60
"""Characters of a name that are compared: the comparison is quadratic."""


def did_you_mean(given: str, known: Iterable[str], prefix: str = "") -> str:
    """Return ` (did you mean NAME?)` with the nearest known name, or '' if none is near.

    `prefix` is shown before that name.
    """
    names = {name.casefold(): name for name in known}
    near = get_close_matches(given[:_LONGEST_NAME].casefold(), names, n=1)
    return f" (did you mean {prefix}{names[near[0]]}?)" if near else ""


def invalid_choice(given: str, known: Sequence[str]) -> str:
    """Return why a value is refused: `'flat' is not valid; choose folders or suffix`."""
    hint = did_you_mean(given, known)
    return f"{given[:_LONGEST_NAME]!r} is not valid{hint}; choose {alternatives(known)}"


def alternatives(names: Sequence[str]) -> str:
    """Return names as a choice: `a`, `a or b`, `a, b, or c`."""
    if len(names) < 3:
        return " or ".join(names)
    return f"{', '.join(names[:-1])}, or {names[-1]}"
