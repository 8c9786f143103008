"""Gate `blank`: the answer has no letters although the source has some."""

from __future__ import annotations

from dragoman_text.spans import has_letters
from dragoman_worker.ports.quality import Candidate
from dragoman_worker.quality.gates.defect import Defect


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has no letters although the source has some."""
    if has_letters(candidate.target) or not has_letters(candidate.source):
        return None
    return Defect("The answer has no letters.")
