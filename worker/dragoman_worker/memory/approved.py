"""Check of an approved translation against what its item and its job ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dragoman_text.verdicts import Judgement
from dragoman_worker.ports import Remembered

_LOST: Final = frozenset({"placeholders", "tags"})
"""Gates whose failure loses what must come through: such a translation is not used."""
_ASKED: Final = _LOST | {"glossary", "max_chars"}
"""Gates that judge what a job asks for. About language, length or style the person has decided."""


def unfit(
    translation: str, source: str, *, protect: Iterable[str] = (), max_chars: int | None = None
) -> str | None:
    """Return what the item demands and the translation breaks, None if it fits.

    It keeps each literal of `protect` as often as the source, and has at most `max_chars` code
    points.
    """
    if max_chars is not None and len(translation) > max_chars:
        return f"it has {len(translation):,} characters; at most {max_chars:,} are allowed"
    for literal in dict.fromkeys(protect):
        if translation.count(literal) != source.count(literal):
            return f"it does not keep {literal[:60]!r} as often as the source"
    return None


def lost(judgement: Judgement) -> str | None:
    """Return what the translation has lost of its source, None if nothing."""
    found = (each.detail for each in judgement.failed if each.gate in _LOST)
    return next(found, None)


def with_findings(found: Remembered, judgement: Judgement) -> Remembered:
    """Return the translation with warnings about what the job asks for and it lacks."""
    findings = [each for each in judgement.findings if each.gate in _ASKED]
    if not findings:
        return found
    checks = {each.gate: {"verdict": "warn", "detail": each.detail} for each in findings}
    warnings = tuple(f"{each.gate}: {each.detail}" for each in findings)
    return replace(found, quality="warn", warnings=warnings, checks={**found.checks, **checks})
