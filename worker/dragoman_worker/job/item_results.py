"""The results of a plan's items: texts, verdicts, errors and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from pydantic import TypeAdapter

from dragoman_schemas.results import ItemResult
from dragoman_worker.errors import JobError, QualityFailed
from dragoman_worker.job.assessments import (
    UNCHECKED,
    UNJUDGED,
    Assessment,
    bounded,
    merged,
    recalled,
)
from dragoman_worker.job.plan import Plan, PlannedItem, Unit

_RESULTS: Final = TypeAdapter(list[ItemResult])
"""Validates all items in one call, which takes two thirds of the time of a call per model."""


class _Outcome(NamedTuple):
    """The text of an item or why it has none, and what the gates say of it."""

    text: str | None
    error: JobError | None = None
    assessment: Assessment = UNCHECKED
    fallback: Literal["best_effort", "source"] | None = None


def item_results(plan: Plan, unfinished: JobError | None = None) -> list[ItemResult]:
    """Return each item's result, in order; unfinished items carry the error `unfinished`."""
    return _RESULTS.validate_python([_members(plan, item, unfinished) for item in plan.items])


def first_failure(plan: Plan) -> JobError | None:
    """Return the error of the first item that failed, None if none did."""
    errors = (_outcome(plan, item, None).error for item in plan.items)
    return next((error for error in errors if error is not None), None)


def _members(plan: Plan, planned: PlannedItem, unfinished: JobError | None) -> dict[str, Any]:
    """Return the members of an item's result."""
    item = planned.item
    outcome = _outcome(plan, planned, unfinished)
    error, assessment = outcome.error, outcome.assessment
    attempts, reason, prompt_tokens, completion_tokens = _summed(planned.units)
    return {
        "id": item.id,
        "text": outcome.text,
        "error": None if error is None else {"code": error.code.value, "message": error.message},
        "fallback": outcome.fallback,
        "detected_source_lang": planned.detected,
        "quality": assessment.quality,
        "checks": bounded(assessment.checks),
        "warnings": [*planned.warnings, *_uncut(planned), *assessment.warnings],
        "attempts": attempts,
        "finish_reason": reason,
        "cached": assessment.cached,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "source_chars": len(item.text),
            "target_chars": len(outcome.text or ""),
        },
    }


def _outcome(plan: Plan, planned: PlannedItem, unfinished: JobError | None) -> _Outcome:
    if planned.approved is not None:
        return _Outcome(planned.approved.text, assessment=recalled(planned.approved))
    if planned.error is not None or not planned.complete:
        return _Outcome(None, planned.error or unfinished)
    if not planned.units:
        return _Outcome(planned.item.text)
    missing = next((unit for unit in planned.units if unit.text is None), None)
    if missing is not None:
        return _Outcome(None, missing.error or unfinished)
    assessment = _assessment(plan, planned)
    if assessment.quality == "fail":
        return _failed(plan, planned, assessment)
    return _Outcome(planned.joined(plan.target_lang), assessment=assessment)


def _failed(plan: Plan, planned: PlannedItem, assessment: Assessment) -> _Outcome:
    """Return what `quality.on_fail` asks for."""
    match plan.rules.on_fail:
        case "best_effort":
            text = planned.joined(plan.target_lang)
            return _Outcome(text, assessment=assessment, fallback="best_effort")
        case "source":
            return _Outcome(planned.item.text, assessment=assessment, fallback="source")
        case "fail":
            return _Outcome(None, _quality_failed(assessment), assessment)


def _quality_failed(assessment: Assessment) -> QualityFailed:
    gates = [gate for gate, check in assessment.checks.items() if check["verdict"] == "fail"]
    return QualityFailed(
        f"the translation did not pass: {', '.join(gates)}; `checks` has the details, and "
        "quality.on_fail = 'best_effort' keeps such texts"
    )


def _assessment(plan: Plan, planned: PlannedItem) -> Assessment:
    """Return the item's assessment, of its units and of the joined text.

    Units that needed no answer do not count. A stretch that could not be cut is a warning.
    """
    parts = [unit.assessment for unit in planned.answered]
    if not planned.in_pieces or not plan.rules.decide:
        return merged(parts)
    joined = [planned.whole or UNJUDGED] if parts else []
    uncut = [Assessment("warn")] if planned.uncut else []
    whole = merged([*parts, *joined, *uncut])
    return replace(whole, cached=bool(parts) and all(part.cached for part in parts))


def _uncut(planned: PlannedItem) -> list[str]:
    """Return the warning of what stays as it is because it cannot be cut, if there is any."""
    stretches = planned.uncut
    if not stretches:
        return []
    many = "1 stretch" if len(stretches) == 1 else f"{len(stretches):,} stretches"
    size = f"{sum(map(len, stretches)):,} characters in all"
    return [f"uncut: {many} ({size}) that no one can cut: too long for a request, kept unchanged."]


def _summed(units: Sequence[Unit]) -> tuple[int, str | None, int, int]:
    """Return the most attempts at a text, the last finish reason and the sums of the tokens."""
    if len(units) == 1:  # the usual item
        unit = units[0]
        return unit.attempts, unit.finish_reason, unit.prompt_tokens, unit.completion_tokens
    return (
        max((unit.earlier_attempts + unit.attempts for unit in units), default=0),
        next((unit.finish_reason for unit in reversed(units) if unit.finish_reason), None),
        sum(unit.prompt_tokens for unit in units),
        sum(unit.completion_tokens for unit in units),
    )
