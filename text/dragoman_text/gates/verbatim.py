"""Gate `verbatim`: links, mail addresses, code and entities of the source are missing."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.prose import spans
from dragoman_text.verdicts import Candidate

_KINDS: Final = frozenset({"url", "mail", "code", "entity"})
_SEARCHED: Final = 20  # of those that are not found as spans; bounds the time


def find(candidate: Candidate) -> Defect | None:
    """Return a slight defect if the answer lacks a link, a mail address, code or an entity."""
    expected = _kept(candidate.source)
    if not expected:
        return None
    found = _kept(candidate.target)
    missing = [each for each in expected if found[each] < expected[each]]
    missing = [
        each
        for each in missing[:_SEARCHED]
        if candidate.target.count(_content(each)) < expected[each]
    ]
    return Defect(f"The answer lacks {listed(missing)}.", slight=True) if missing else None


def _kept(text: str) -> Counter[str]:
    return Counter(text[span.start : span.end] for span in spans(text) if span.kind in _KINDS)


def _content(kept: str) -> str:
    """Return what must be there: code may be quoted in another way."""
    return kept.strip("`") or kept
