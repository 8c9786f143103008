"""How is the end of an execution told? As an outcome, with the result that readers will see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from dragoman_schemas.jobs import DocumentRef, TranslationJob
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
from dragoman_schemas.wire import Envelope, now_rfc3339
from dragoman_worker import errors
from dragoman_worker.errors import JobError
from dragoman_worker.job.in_flight import JobInFlight
from dragoman_worker.job.opening import Opening
from dragoman_worker.job.outcome import Completed, Outcome, Rejected
from dragoman_worker.job.plan import Plan
from dragoman_worker.ports import ClaimReply, Delivery
from dragoman_worker.prompts.plain import PLAIN


@dataclass(frozen=True, slots=True)
class Identity:
    """Who signs the results."""

    worker_id: str
    engine: EngineInfo
    model: str


@dataclass(slots=True, eq=False)
class Execution:
    """What is known so far of one delivery whose id can be read."""

    delivery: Delivery
    envelope: Envelope
    replay: int
    held: JobInFlight
    opening: Opening
    job: TranslationJob | None = None
    plan: Plan | None = None
    failure: JobError | None = None
    reply: ClaimReply | None = None
    engine_s: float = 0.0

    @property
    def document(self) -> DocumentRef | None:
        """Its place in a document, if that much of the record can be read.

        An invalid record counts in its document's tally too: else nobody could wait for its end.
        """
        if self.job is not None:
            return self.job.document
        try:
            return DocumentRef.model_validate(self.envelope.fields.get("document"))
        except ValidationError:
            return None


class Reporter:
    """Turns what is known of an execution into its outcome. Pure but for the clock."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def finished(self, execution: Execution, plan: Plan) -> Outcome:
        items = plan.results()
        failed = next((item.error for item in items if item.error is not None), None)
        if failed is None:
            return Completed(self._result(execution, "completed", items), execution.held.claim)
        failure = plan.first_failure() or errors.Internal("an item has no text")
        execution.failure = failure
        return self.rejected(execution, items)

    def ended(self, execution: Execution, why: JobError) -> Outcome:
        """Cancelled or expired: items that were done are kept, and no dead letter is written."""
        status: TerminalStatus = (
            "expired" if isinstance(why, errors.DeadlineExceeded) else "cancelled"
        )
        return Completed(
            self._result(execution, status, _items(execution, why), why),
            execution.held.claim,
        )

    def rejected(self, execution: Execution, items: list[ItemResult] | None = None) -> Rejected:
        failure = execution.failure or errors.Internal("no reason is known")
        items = _items(execution, failure) if items is None else items
        result = self._result(execution, "failed", items, failure)
        return Rejected(
            failure,
            result,
            execution.held.claim,
            job_id=execution.envelope.job_id,
            attempts=result.attempts,
            deliveries=result.deliveries,
            first_seen=result.timing.started_at,
        )

    def defective(self, execution: Execution) -> Rejected:
        """A failure with the least that can be said, where more of it cannot be put together."""
        failure = execution.failure or errors.Internal("no reason is known")
        envelope = execution.envelope
        result = TranslationResult(
            job_id=envelope.job_id,
            status="failed",
            fingerprint=envelope.fingerprint,
            error=_error_info(failure),
            worker_id=self._identity.worker_id,
        )
        return Rejected(failure, result, execution.held.claim, job_id=envelope.job_id)

    def stored(self, execution: Execution) -> TranslationResult:
        """The result that stands in the store, or as much of it as what follows a finish needs."""
        reply = execution.reply
        if reply is not None and reply.result is not None:
            return of_document(reply.result, execution.document)
        status = as_terminal(reply.status) if reply is not None else None
        return TranslationResult(
            job_id=execution.envelope.job_id,
            status=status or "completed",
            document=execution.document,
        )

    def _result(
        self,
        execution: Execution,
        status: TerminalStatus,
        items: list[ItemResult],
        failure: JobError | None = None,
    ) -> TranslationResult:
        job, identity, plan = execution.job, self._identity, execution.plan
        return TranslationResult(
            job_id=execution.envelope.job_id,
            status=status,
            fingerprint=execution.envelope.fingerprint,
            translations=items,
            error=None if failure is None else _error_info(failure),
            usage=_sum(items),
            model=identity.model,
            profile=None if plan is None or plan.profile is PLAIN else plan.profile.name,
            engine=identity.engine,
            worker_id=identity.worker_id,
            attempts=max((item.attempts for item in items), default=0),
            deliveries=execution.reply.deliveries if execution.reply else 0,
            timing=_timing(execution),
            metadata=job.metadata if job else None,
            document=execution.document,
        )


def _items(execution: Execution, unfinished: JobError) -> list[ItemResult]:
    if execution.plan is not None:
        return execution.plan.results(unfinished)
    error = ItemError(code=unfinished.code.value, message=unfinished.message)
    items = execution.job.items if execution.job else ()
    return [
        ItemResult(id=item.id, error=error, usage=Usage(source_chars=len(item.text)))
        for item in items
    ]


def of_document(result: TranslationResult, document: DocumentRef | None) -> TranslationResult:
    """The result with its place in a document, which a client that cancels in time does not know.

    Without it the document's progress would never be complete.
    """
    if result.document is not None or document is None:
        return result
    return result.model_copy(update={"document": document})


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


def _timing(execution: Execution) -> Timing:
    reply, finished_at = execution.reply, now_rfc3339()
    queued_at = reply.queued_at if reply else None
    started_at = reply.started_at if reply else None
    return Timing(
        queued_at=queued_at,
        started_at=started_at,
        finished_at=finished_at,
        queue_ms=_ms_between(queued_at, started_at),
        engine_ms=int(execution.engine_s * 1000),
        total_ms=_ms_between(queued_at, finished_at),
    )


def _ms_between(start: str | None, end: str | None) -> int:
    if start is None or end is None:
        return 0
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (ValueError, TypeError):  # a foreign client wrote a time we cannot read
        return 0
    return max(0, int(span.total_seconds() * 1000))
