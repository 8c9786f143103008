"""Gate `paragraphs`: the answer has another number of paragraphs than the source."""

from __future__ import annotations

from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if paragraphs were merged or lost: slight unless more than half of them.

    A source of a single paragraph is not judged: `length` and `chatter` find what is added.
    """
    if "\n" not in candidate.source:
        return None
    expected, found = count(candidate.source), count(candidate.target)
    if expected < 2 or expected == found:
        return None
    detail = f"The answer has {found} paragraphs; the source has {expected}."
    return Defect(detail, slight=2 * found >= expected)


def count(text: str) -> int:
    """Return the number of blocks of lines between blank lines."""
    lines = [not line.strip() for line in text.strip().splitlines()]
    return 1 + sum(
        blank and not before for before, blank in zip([True, *lines], lines, strict=False)
    )
