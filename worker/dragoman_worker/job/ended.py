"""Fields of the log line `job_ended` and of a delivery's span: ids, times and counts, no text."""

from __future__ import annotations

from typing import Any, assert_never

from dragoman_schemas.results import TranslationResult
from dragoman_worker.job.outcome import Completed, Outcome, Rejected, Released


def fields_of(outcome: Outcome) -> dict[str, Any]:
    """Return what became of a delivery; a failed one has a `code`."""
    match outcome:
        case Completed(result):
            return {"outcome": "completed", **_of(result)}
        case Rejected(failure, result):
            fields = {"job_id": outcome.job_id} if result is None else _of(result)
            return {"outcome": "rejected", **fields, "code": failure.code.value}
        case Released(reason):
            return {"outcome": "released", "reason": reason}
        case _:
            assert_never(outcome)


def _of(result: TranslationResult) -> dict[str, Any]:
    timing, usage = result.timing, result.usage
    return {
        "job_id": result.job_id,
        "status": result.status,
        "items": len(result.translations),
        "attempts": result.attempts,
        "deliveries": result.deliveries,
        "queue_ms": timing.queue_ms,
        "engine_ms": timing.engine_ms,
        "total_ms": timing.total_ms,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }
