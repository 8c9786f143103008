"""What one gate reports about one answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of an answer, with one sentence about it.

    `slight` defects are likely errors; the others are certain enough to ask for another answer.
    The table of gates decides what follows from each.
    """

    detail: str
    slight: bool = False


def listed(values: list[str], most: int = 3) -> str:
    """Return the first values as a short list in double quotes, each cut to 40 characters."""
    shown = [f'"{value if len(value) <= 40 else value[:39] + "…"}"' for value in values[:most]]
    if len(values) > most:
        shown.append(f"{len(values) - most} more")
    return ", ".join(shown)
