"""Turn a finished, failed, cancelled or expired job into its outcome, and that into log fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, assert_never

from dragoman_schemas.jobs import DocumentRef
from dragoman_schemas.readable import readable_items, readable_metadata
from dragoman_schemas.results import (
    EngineInfo,
    ErrorInfo,
    ItemError,
    ItemResult,
    TerminalStatus,
    Timing,
    TranslationResult,
    Usage,
    as_terminal,
)
from dragoman_schemas.wire import now_rfc3339, stored_result
from dragoman_worker import errors
from dragoman_worker.errors import JobError
from dragoman_worker.job.in_flight import JobInFlight
from dragoman_worker.job.item_results import first_failure, item_results
from dragoman_worker.job.outcome import Completed, Outcome, Rejected, Released
from dragoman_worker.job.plan import Plan
from dragoman_worker.ports import Claim
from dragoman_worker.prompts.plain import PLAIN


@dataclass(frozen=True, slots=True)
class Identity:
    """The worker that results name."""

    worker_id: str
    engine: EngineInfo
    model: str


class Reporter:
    """Turns jobs in flight into outcomes. Pure but for the clock."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def finished(self, job: JobInFlight, plan: Plan) -> Outcome:
        """Return the outcome of a run: completed if every item has a text, rejected otherwise."""
        items = item_results(plan)
        if all(item.error is None for item in items):
            return Completed(self._result(job, "completed", items), job.claim, job.ttl_s)
        failure = first_failure(plan) or errors.Internal("an item has no text")
        return self.rejected(job, failure, items)

    def ended(self, job: JobInFlight, why: JobError) -> Outcome:
        """Return the outcome of a cancelled or expired job: finished items stay, no dead letter."""
        status: TerminalStatus = (
            "expired" if isinstance(why, errors.DeadlineExceeded) else "cancelled"
        )
        return Completed(self._result(job, status, _items(job, why), why), job.claim, job.ttl_s)

    def rejected(
        self, job: JobInFlight, failure: JobError, items: list[ItemResult] | None = None
    ) -> Rejected:
        """Return the outcome of a failed job; items without a text carry the failure."""
        items = _items(job, failure) if items is None else items
        result = self._result(job, "failed", items, failure)
        return Rejected(
            failure,
            result,
            job.claim,
            job_id=job.envelope.job_id,
            attempts=result.attempts,
            deliveries=result.deliveries,
            first_seen=result.timing.started_at,
        )

    def defective(self, job: JobInFlight, failure: JobError) -> Rejected:
        """Return a failure with a minimal result, for a job whose full result cannot be built."""
        envelope = job.envelope
        result = TranslationResult(
            job_id=envelope.job_id,
            status="failed",
            fingerprint=envelope.fingerprint,
            error=_error_info(failure),
            worker_id=self._identity.worker_id,
            traceparent=_traceparent(job),
        )
        return Rejected(failure, result, job.claim, job_id=envelope.job_id)

    def stored(self, job: JobInFlight) -> TranslationResult:
        """Return the result in the store, or as much of it as what follows a finish needs."""
        answer, job_id = job.answer, job.envelope.job_id
        status = as_terminal(answer.status) if answer is not None else None
        if answer is not None and answer.result is not None and status is not None:
            return of_document(stored_result(job_id, status, answer.result), job.document)
        return TranslationResult(job_id=job_id, status=status or "completed", document=job.document)

    def _result(
        self,
        job: JobInFlight,
        status: TerminalStatus,
        items: list[ItemResult],
        failure: JobError | None = None,
    ) -> TranslationResult:
        identity, plan, decoded = self._identity, job.plan, job.decoded
        return TranslationResult(
            job_id=job.envelope.job_id,
            status=status,
            fingerprint=job.envelope.fingerprint,
            translations=items,
            error=None if failure is None else _error_info(failure),
            usage=_sum(items),
            model=identity.model,
            profile=None if plan is None or plan.profile is PLAIN else plan.profile.name,
            engine=identity.engine,
            worker_id=identity.worker_id,
            attempts=max((item.attempts for item in items), default=0),
            deliveries=job.answer.deliveries if job.answer else 0,
            timing=_timing(job),
            metadata=decoded.metadata if decoded else readable_metadata(job.envelope.fields),
            document=job.document,
            traceparent=_traceparent(job),
        )


def _traceparent(job: JobInFlight) -> str | None:
    return None if job.trace is None else job.trace.traceparent


def _items(job: JobInFlight, unfinished: JobError) -> list[ItemResult]:
    if job.plan is not None:
        return item_results(job.plan, unfinished)
    error = ItemError(code=unfinished.code.value, message=unfinished.message)
    # Of an invalid job too: the list is as long as the input.
    items = (
        [(item.id, item.text) for item in job.decoded.items]
        if job.decoded
        else readable_items(job.envelope.fields)
    )
    return [
        ItemResult(id=item_id, error=error, usage=Usage(source_chars=len(text)))
        for item_id, text in items
    ]


def of_document(result: TranslationResult, document: DocumentRef | None) -> TranslationResult:
    """Return the result with its place in a document, which a client that cancels does not know.

    Without it the document's progress would never be complete.
    """
    if result.document is not None or document is None:
        return result
    return result.model_copy(update={"document": document})


def unencodable(result: TranslationResult, claim: Claim | None) -> Rejected:
    """Return the failure of a job whose result cannot be encoded, without its texts."""
    failure = errors.Internal(
        "the result holds what JSON in UTF-8 cannot encode, such as a lone surrogate; translate "
        "the items of the job one by one to find the text that causes it"
    )
    failed = result.model_copy(update={"status": "failed", "error": _error_info(failure)})
    return Rejected(
        failure,
        without_texts(failed),
        claim,
        job_id=result.job_id,
        attempts=result.attempts,
        deliveries=result.deliveries,
        first_seen=result.timing.started_at,
    )


def without_texts(result: TranslationResult) -> TranslationResult:
    """Return a result that can be encoded: without what engine and gates have written."""
    error = result.error
    if error is not None:
        encodable = error.message.encode(errors="replace").decode()
        error = error.model_copy(update={"message": encodable})
    return result.model_copy(update={"translations": [], "warnings": [], "error": error})


def _error_info(failure: JobError) -> ErrorInfo:
    return ErrorInfo(
        code=failure.code.value,
        message=failure.message,
        retryable=failure.retryable,
        stage=failure.stage,
    )


def _sum(items: list[ItemResult]) -> Usage:
    if len(items) == 1:  # the usual job
        return items[0].usage
    return Usage(
        prompt_tokens=sum(item.usage.prompt_tokens for item in items),
        completion_tokens=sum(item.usage.completion_tokens for item in items),
        source_chars=sum(item.usage.source_chars for item in items),
        target_chars=sum(item.usage.target_chars for item in items),
    )


def _timing(job: JobInFlight) -> Timing:
    answer, finished_at = job.answer, now_rfc3339()
    queued_at = answer.queued_at if answer else None
    started_at = answer.started_at if answer else None
    return Timing(
        queued_at=queued_at,
        started_at=started_at,
        finished_at=finished_at,
        queue_ms=_ms_between(queued_at, started_at),
        engine_ms=int(job.engine_s * 1000),
        total_ms=_ms_between(queued_at, finished_at),
    )


def _ms_between(start: str | None, end: str | None) -> int:
    if start is None or end is None:
        return 0
    try:
        return max(0, _ms(end) - _ms(start))
    except ValueError:  # a foreign client wrote a time we cannot read
        return 0


@lru_cache(maxsize=1024)  # jobs share milliseconds, and each time is read twice
def _ms(time: str) -> int:
    """Return a time in milliseconds since 1970. Raises ValueError."""
    moment = datetime.fromisoformat(time)
    if moment.tzinfo is None:
        raise ValueError("it has no offset")
    return round(moment.timestamp() * 1000)


def fields_of(outcome: Outcome) -> dict[str, Any]:
    """Return what the log line `job_ended` and the span of a delivery say: no text."""
    match outcome:
        case Completed(result):
            return {"outcome": "completed", **_counts(result)}
        case Rejected(failure, result):
            fields = {"job_id": outcome.job_id} if result is None else _counts(result)
            return {"outcome": "rejected", **fields, "code": failure.code.value}
        case Released(reason):
            return {"outcome": "released", "reason": reason}
        case _:
            assert_never(outcome)


def _counts(result: TranslationResult) -> dict[str, Any]:
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
