"""Assessments: what the gates say of an item's text, as results report it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dragoman_schemas.jobs import OnFail, Quality, QualityLevel
from dragoman_schemas.results import QualityVerdict
from dragoman_text.masks import TAGS, TokenStyle, style_named
from dragoman_text.verdicts import Finding, Judgement
from dragoman_worker.ports import Remembered
from dragoman_worker.settings import QualitySettings

CHECKS_BYTES: Final = 1024
"""Most bytes of an item's `checks` as JSON; beyond it the details are left out."""
_ORDER: Final[tuple[QualityVerdict, ...]] = ("fail", "warn", "ok", "unchecked")
"""The worst verdict first."""
_MEMORY: Final = "memory"


@dataclass(frozen=True, slots=True)
class QualityRules:
    """How the answers of one job are judged: its own `quality` over that of the settings."""

    level: QualityLevel = "off"
    max_attempts: int = 1
    on_fail: OnFail = "fail"
    token_style: TokenStyle = TAGS
    """How protected spans are spelled where they are numbered."""

    @classmethod
    def given(cls, settings: QualitySettings) -> QualityRules:
        """Return the rules that the settings give to jobs which ask for none."""
        return cls(
            settings.level,
            settings.max_attempts,
            settings.on_fail,
            token_style=style_named(settings.token_style),
        )

    @property
    def decide(self) -> bool:
        """Whether verdicts decide: what is asked for again, remembered and reported."""
        return self.level != "off"

    def _grants(self, asked: Quality) -> bool:
        """Return whether a job asks for nothing else than these rules."""
        return (
            asked.level in (None, self.level)
            and asked.max_attempts in (None, self.max_attempts)
            and asked.on_fail in (None, self.on_fail)
        )

    def of(self, asked: Quality | None) -> QualityRules:
        """Return these rules with what a job asks for."""
        if asked is None or self._grants(asked):
            return self
        return replace(
            self,
            level=asked.level or self.level,
            max_attempts=asked.max_attempts or self.max_attempts,
            on_fail=asked.on_fail or self.on_fail,
        )


NOT_JUDGED: Final = QualityRules()


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict on one text, and why."""

    quality: QualityVerdict = "unchecked"
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By gate: `verdict`, and `detail`, `remedy` and `attempt` where there are any."""
    warnings: tuple[str, ...] = ()
    cached: bool = False


UNCHECKED: Final = Assessment()
UNJUDGED: Final = Assessment(
    warnings=("unjudged: no judgement could be had within quality.timeout_s.",)
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One judged answer and the remedy it was asked for with."""

    judgement: Judgement
    remedy: str
    number: int


def assessment_of(chosen: Attempt, earlier: Iterable[Attempt]) -> Assessment:
    """Return the assessment of the chosen answer; gates that only `earlier` ones failed are fixed.

    The first word of each warning is the gate's name.
    """
    findings = chosen.judgement.findings
    checks = {finding.gate: _check(finding, chosen) for finding in reversed(findings)}
    for attempt in earlier:
        for finding in attempt.judgement.failed:
            fixed = {"verdict": "fixed", "remedy": chosen.remedy, "attempt": chosen.number}
            checks.setdefault(finding.gate, fixed)
    warnings = tuple(
        f"{finding.gate}: {finding.detail}" for finding in findings if finding.severity != "fixed"
    )
    return Assessment(chosen.judgement.verdict, checks, warnings)


def recalled(remembered: Remembered) -> Assessment:
    """Return the assessment of a text from the memory."""
    checks = dict(remembered.checks)
    if remembered.approved:
        checks[_MEMORY] = {"origin": "approved"}
    return Assessment(remembered.quality, checks, tuple(remembered.warnings), cached=True)


def remembered(text: str, assessment: Assessment) -> Remembered:
    """Return what the memory keeps of a text."""
    return Remembered(text, assessment.quality, assessment.warnings, dict(assessment.checks))


def merged(parts: Sequence[Assessment]) -> Assessment:
    """Return the assessment of an item from those of its parts: the worst verdict counts.

    A part that could not be judged leaves an item unchecked that would pass otherwise.
    """
    if len(parts) == 1:  # the usual item
        return parts[0]
    found: frozenset[QualityVerdict] = frozenset(part.quality for part in parts)
    worst = _worst(found)
    checks: dict[str, Mapping[str, Any]] = {}
    for part in sorted(parts, key=lambda part: _ORDER.index(part.quality)):
        checks = {**part.checks, **checks}
    warnings = dict.fromkeys(warning for part in parts for warning in part.warnings)
    cached = bool(parts) and all(part.cached for part in parts)
    return Assessment(worst, checks, tuple(warnings), cached)


def _worst(found: frozenset[QualityVerdict]) -> QualityVerdict:
    if "unchecked" in found and "fail" not in found:
        return "unchecked"
    return min(found, key=_ORDER.index) if found else "unchecked"


def bounded(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the checks within CHECKS_BYTES: without details if they are too long, then fewer."""
    if not checks:  # the usual item
        return {}
    kept = dict(checks)
    if _size(kept) > CHECKS_BYTES:
        kept = {gate: _without_detail(check) for gate, check in kept.items()}
    while _size(kept) > CHECKS_BYTES:
        kept.popitem()
    return kept


def _without_detail(check: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in check.items() if name != "detail"}


def _size(checks: Mapping[str, Mapping[str, Any]]) -> int:
    return len(json.dumps(checks, ensure_ascii=False).encode())


def _check(finding: Finding, attempt: Attempt) -> Mapping[str, Any]:
    check: dict[str, Any] = {"verdict": finding.severity, "detail": finding.detail}
    if attempt.number > 1:
        check |= {"remedy": attempt.remedy, "attempt": attempt.number}
    return check
