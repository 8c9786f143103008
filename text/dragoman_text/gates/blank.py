"""Gate `blank`: the answer has no letters although the source has some."""

from __future__ import annotations

from dragoman_text.gates.defect import Defect
from dragoman_text.spans import has_letters
from dragoman_text.verdicts import Candidate


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has no letters although the source has some."""
    if has_letters(candidate.target) or not has_letters(candidate.source):
        return None
    return Defect("The answer has no letters.")
