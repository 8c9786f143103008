"""Schema of a job's result (docs/reference/jobs.md)."""

from __future__ import annotations

import operator
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)

from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.jobs import SCHEMA_VERSION, DocumentRef


class JobStatus(StrEnum):
    """States of a job's key; the last four are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TERMINAL_STATUSES: Final = frozenset(
    {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.EXPIRED}
)

TerminalStatus = Literal["completed", "failed", "cancelled", "expired"]


def as_terminal(status: str | None) -> TerminalStatus | None:
    """Return the status if it is terminal, otherwise None."""
    match status:
        case "completed" | "failed" | "cancelled" | "expired":
            return status
        case _:
            return None


QualityVerdict = Literal["ok", "warn", "fail", "unchecked"]


class ResultModel(BaseModel):
    """Frozen model that ignores unknown fields."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _is_none(value: object) -> bool:
    return value is None


_IF_GIVEN: Final = Field(exclude_if=_is_none)
_IF_ANY: Final = Field(exclude_if=operator.not_)


def _known_members(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: member for name, member in value.items() if name in DocumentRef.model_fields}


DocumentEcho = Annotated[DocumentRef, BeforeValidator(_known_members)]
"""A job's DocumentRef, read with the tolerance of a result's reader."""


class ErrorInfo(ResultModel):
    """Why there is no translation. ``code`` is a FailureCode, or a code of a newer worker."""

    code: str
    message: str
    retryable: bool = False
    stage: str | None = None


class ItemError(ResultModel):
    """Why one item has no translation."""

    code: str
    message: str


class Usage(ResultModel):
    """Tokens that the engine read and wrote, summed over attempts; characters in and out."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    source_chars: int = 0
    target_chars: int = 0


class ItemResult(ResultModel):
    """Outcome of one item, at the item's position in ``translations``."""

    id: Annotated[str | None, _IF_GIVEN] = None
    text: str | None = None
    error: ItemError | None = None
    fallback: Literal["best_effort", "source"] | None = None
    detected_source_lang: str | None = None
    quality: QualityVerdict = "unchecked"
    checks: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
    attempts: int = 0
    finish_reason: str | None = None
    cached: bool = False
    usage: Usage = Usage()


class EngineInfo(ResultModel):
    """The engine that made the translation."""

    name: str
    version: str


class Timing(ResultModel):
    """Times in RFC 3339, UTC, with milliseconds; durations in ms, never negative."""

    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    queue_ms: Annotated[int, Field(ge=0)] = 0
    engine_ms: Annotated[int, Field(ge=0)] = 0
    total_ms: Annotated[int, Field(ge=0)] = 0


class TranslationResult(ResultModel):
    """Terminal state of a job, as stored in its key's ``result`` field and the results topic."""

    schema_: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    job_id: str
    status: TerminalStatus
    fingerprint: str | None = None
    translations: list[ItemResult] = Field(default_factory=list)
    error: ErrorInfo | None = None
    usage: Usage = Usage()
    model: str | None = None
    profile: str | None = None
    engine: EngineInfo | None = None
    worker_id: str | None = None
    attempts: int = 0
    deliveries: int = 0
    timing: Timing = Timing()
    metadata: Annotated[dict[str, str] | None, _IF_GIVEN] = None
    document: Annotated[DocumentEcho | None, _IF_GIVEN] = None
    traceparent: Annotated[str | None, _IF_GIVEN] = None
    """W3C trace context of the run, or of the submission; absent if the job is not traced."""
    warnings: Annotated[list[str], _IF_ANY] = Field(default_factory=list)
    truncated: Annotated[bool | None, _IF_ANY] = None
    """If true, `encode_result` omits the translations."""


def cancelled_result(job_id: str, finished_at: str) -> TranslationResult:
    """Return the minimal result that a cancelling client writes for a job that never ran.

    ``finished_at`` is in RFC 3339. The client knows neither the job's fingerprint nor its items.
    """
    code = FailureCode.CANCELLED
    return TranslationResult(
        job_id=job_id,
        status="cancelled",
        error=ErrorInfo(
            code=code, message="cancelled before it was run", retryable=code in RETRYABLE
        ),
        timing=Timing(finished_at=finished_at),
    )
