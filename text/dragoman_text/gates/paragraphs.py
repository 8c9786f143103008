"""Gate `paragraphs`: the answer has another number of paragraphs, or fewer lines of a list."""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate

_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•‣◦▪·–—|]|[0-9]{1,3}[.)、:]|[A-Za-z][.)])[ \t]*\S")
_ENDS: Final = tuple(".!?:;…。！？：；।॥؟۔።|")
_LEAST_LINES: Final = 3
_SHORT_LINE: Final = 50
"""Characters up to which lines are no prose that was wrapped, where all are as short."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if paragraphs were merged or lost: slight unless more than half of them.

    So are fewer lines, if those of the source stand for themselves; lines of prose may be wrapped
    otherwise. A source of a single line is not judged: `length` and `chatter` find what is added.
    """
    source, target = candidate.source, candidate.target
    if "\n" not in source:
        return None
    expected, found = count(source), count(target)
    if expected >= 2 and expected != found:
        detail = f"The answer has {found} paragraphs; the source has {expected}."
        return Defect(detail, slight=2 * found >= expected)
    lines, kept = _lines(source), _lines(target)
    if len(lines) > len(kept) and _stand_alone(lines):
        return Defect(
            f"The answer has {len(kept)} lines; the source has {len(lines)}.", slight=True
        )
    return None


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _stand_alone(lines: list[str]) -> bool:
    """Return whether these are items, rows, sentences or labels, and not lines of a paragraph."""
    if len(lines) < _LEAST_LINES:
        return False
    if max(map(len, lines)) <= _SHORT_LINE:
        return True
    apart = sum(_ITEM.match(line) is not None or line.rstrip().endswith(_ENDS) for line in lines)
    return apart >= 0.8 * len(lines)


def count(text: str) -> int:
    """Return the number of blocks of lines between blank lines."""
    lines = [not line.strip() for line in text.strip().splitlines()]
    return 1 + sum(
        blank and not before for before, blank in zip([True, *lines], lines, strict=False)
    )
