"""Gate `max_chars`: the answer is longer than its item allows."""

from __future__ import annotations

from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has more than `max_chars` code points."""
    most = candidate.max_chars
    if most is None or len(candidate.target) <= most:
        return None
    return Defect(f"The answer has {len(candidate.target)} characters; at most {most} are allowed.")
