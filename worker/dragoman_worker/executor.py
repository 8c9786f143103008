"""What becomes of one delivery? Decode, take, translate: a straight line to an Outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from dragoman_schemas.jobs import DocumentRef, TranslationJob
from dragoman_schemas.results import (
    EngineInfo,
    ErrorInfo,
    ItemError,
    ItemResult,
    JobStatus,
    TerminalStatus,
    Timing,
    TranslationResult,
    Usage,
)
from dragoman_schemas.wire import (
    Envelope,
    InvalidRecord,
    UnreadableRecord,
    decode_job,
    now_rfc3339,
    open_record,
    replay_of,
    rfc3339,
)
from dragoman_worker import errors
from dragoman_worker.errors import Halt, JobError
from dragoman_worker.in_hand import InHand, JobInHand
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics
from dragoman_worker.outcome import Completed, Outcome, Rejected, Released, Take
from dragoman_worker.permits import Draining, Permits
from dragoman_worker.ports import Delivery, Store, TakeReply, TakeRequest
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.retry import until_available
from dragoman_worker.translation import Plan, Translator

DEFAULT_TTL_S: Final = 86_400
_DECODE_ERRORS: Final = {
    kind.code: kind
    for kind in (errors.InvalidJob, errors.UnsupportedSchema, errors.UnsupportedLanguage)
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who signs the results."""

    worker_id: str
    engine: EngineInfo
    model: str


@dataclass(slots=True, eq=False)
class _Execution:
    """What is known so far of one delivery whose id can be read."""

    delivery: Delivery
    envelope: Envelope
    replay: int
    held: JobInHand
    job: TranslationJob | None = None
    plan: Plan | None = None
    failure: JobError | None = None
    reply: TakeReply | None = None
    engine_s: float = 0.0

    @property
    def document(self) -> DocumentRef | None:
        return self.job.document if self.job is not None else None


class Executor:
    """Runs deliveries to their outcome; settles nothing."""

    def __init__(
        self,
        *,
        store: Store,
        translator: Translator,
        permits: Permits,
        in_hand: InHand,
        owned: Callable[[Delivery], bool],
        identity: Identity,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._translator = translator
        self._permits = permits
        self._in_hand = in_hand
        self._owned = owned
        self._identity = identity
        self._metrics = metrics

    async def execute(self, delivery: Delivery) -> tuple[Outcome, JobInHand | None]:
        """The outcome, and the job in hand that the caller lets go once it is settled.

        Raises Halt. Cancelled, it leaves its take outstanding for the drain to release.
        """
        try:
            envelope = open_record(delivery.value)
        except UnreadableRecord as error:
            return Rejected(errors.InvalidJob(str(error))), None
        replay = replay_of(delivery.headers)
        key = (envelope.job_id, envelope.fingerprint, replay)
        while (twin := self._in_hand.find(key)) is not None:
            result = await asyncio.shield(twin.settled)
            if result is not None:
                return Completed(result, take=None), None
        held = self._in_hand.enter(key, _document_id(envelope))
        execution = _Execution(delivery, envelope, replay, held)
        try:
            return await self._run(execution), held
        except Exception as error:
            if isinstance(error, Halt) or held.take is None:
                raise  # nothing is claimed: the worker ends, and Kafka gives the record again
            logger().error("job_broke", job_id=envelope.job_id, where=where(error))
            execution.failure = errors.Internal(f"a defect of the worker: {where(error)}")
            return self._rejected(execution), held
        finally:
            if execution.plan is not None:
                self._translator.dismiss(execution.plan)

    async def _run(self, execution: _Execution) -> Outcome:
        self._decode(execution)
        try:
            if execution.plan is not None:
                await self._translator.admit(execution.plan)
        except Draining:
            return Released("draining")
        if not self._owned(execution.delivery):
            return Released("partition revoked")
        return await self._answer(execution, await self._take(execution))

    async def _answer(self, execution: _Execution, reply: TakeReply) -> Outcome:
        match reply.verdict:
            case "run":
                return await self._translate(execution)
            case "done":
                return Completed(reply.result or self._stored(execution), take=None)
            case "conflict":
                why = "job_id: it belongs to another payload; give every job an id of its own"
                return Rejected(errors.Conflict(why), job_id=execution.envelope.job_id)
            case "cancel":
                return self._ended(execution, errors.Cancelled("cancelled before it ran"))
            case "poisoned":
                why = "the worker process died each time this record was being worked on"
                execution.failure = errors.Poisoned(why)
                return self._rejected(execution)
            case "suspect":
                return await self._alone(execution)

    # --- steps ------------------------------------------------------------------------------------

    def _decode(self, execution: _Execution) -> None:
        """Read and plan the job; a failure is kept: an invalid record is taken all the same."""
        delivery = execution.delivery
        try:
            size = len(delivery.value or b"")
            execution.job = decode_job(execution.envelope, size=size)
            if not _past_deadline(execution.job):
                execution.plan = self._translator.plan(execution.job)
        except InvalidRecord as error:
            kind = _DECODE_ERRORS.get(error.code, errors.InvalidJob)
            execution.failure = kind(str(error))
        except JobError as error:
            execution.failure = error
        except Exception as error:  # noqa: BLE001  a record that breaks us must not come again
            logger().error("decode_broke", job_id=execution.envelope.job_id, where=where(error))
            execution.failure = errors.Internal(f"a defect of the worker: {where(error)}")

    async def _take(self, execution: _Execution, *, alone: bool = False) -> TakeReply:
        envelope, delivery = execution.envelope, execution.delivery
        take = Take(
            job_id=envelope.job_id,
            nonce=uuid4().hex,
            replay=execution.replay,
            ttl_s=_ttl_s(execution.job),
            fingerprint=envelope.fingerprint,
        )
        request = TakeRequest(
            job_id=envelope.job_id,
            fingerprint=envelope.fingerprint,
            nonce=take.nonce,
            place=delivery.place,
            replay=execution.replay,
            queued_at=rfc3339(max(0, delivery.timestamp_ms)),
            document_id=execution.document.document_id if execution.document else None,
            alone=alone,
        )
        execution.held.take = take  # before the call: a lost reply may hide a claim to release
        reply = await until_available(lambda: self._store.take(request))
        claimed = reply.verdict in {"run", "cancel", "poisoned"}
        execution.held.take = replace(take, replay=reply.replays) if claimed else None
        execution.reply = reply
        if reply.deliveries > 1:
            self._metrics.redeliveries.inc()
        return reply

    async def _alone(self, execution: _Execution) -> Outcome:
        """A job that was in hand when processes died runs with nobody else in the engine."""
        if execution.plan is not None:
            self._translator.dismiss(execution.plan)
        async with self._permits.alone(execution.envelope.job_id):
            return await self._answer(execution, await self._take(execution, alone=True))

    async def _translate(self, execution: _Execution) -> Outcome:
        job, plan = execution.job, execution.plan
        if execution.failure is not None:
            return self._rejected(execution)
        if job is not None and plan is None:
            return self._ended(execution, errors.DeadlineExceeded("the deadline had passed"))
        if job is None or plan is None:
            raise AssertionError("a job that decoded has a plan, a deadline passed, or a failure")
        if execution.reply is not None and execution.reply.document_cancelled:
            return self._ended(execution, errors.Cancelled("its document was cancelled"))
        started = time.perf_counter()
        try:
            with self._cancellable(execution) as scope:
                async with scope:
                    await self._translator.run(plan)
        except TimeoutError:
            return self._ended(execution, _why_ended(execution.held))
        finally:
            execution.engine_s = time.perf_counter() - started
        return self._finished(execution, plan)

    @contextmanager
    def _cancellable(self, execution: _Execution) -> Iterator[asyncio.Timeout]:
        """One scope for the deadline and for cancels: whichever comes first ends it."""
        scope = asyncio.timeout_at(_loop_time_of(execution.job))
        execution.held.run_in(scope)
        try:
            yield scope
        finally:
            execution.held.leave_scope()

    # --- outcomes ---------------------------------------------------------------------------------

    def _finished(self, execution: _Execution, plan: Plan) -> Outcome:
        items = self._translator.results(plan)
        failed = next((item.error for item in items if item.error is not None), None)
        if failed is None:
            return Completed(self._result(execution, "completed", items), execution.held.take)
        failure = plan.first_failure() or errors.Internal("an item has no text")
        execution.failure = failure
        return self._rejected(execution, items)

    def _ended(self, execution: _Execution, why: JobError) -> Outcome:
        """Cancelled or expired: items that were done are kept, and no dead letter is written."""
        status: TerminalStatus = (
            "expired" if isinstance(why, errors.DeadlineExceeded) else "cancelled"
        )
        return Completed(
            self._result(execution, status, self._items(execution, why), why),
            execution.held.take,
        )

    def _rejected(self, execution: _Execution, items: list[ItemResult] | None = None) -> Rejected:
        failure = execution.failure or errors.Internal("no reason is known")
        items = self._items(execution, failure) if items is None else items
        result = self._result(execution, "failed", items, failure)
        return Rejected(
            failure,
            result,
            execution.held.take,
            job_id=execution.envelope.job_id,
            attempts=result.attempts,
            deliveries=result.deliveries,
            first_seen=result.timing.started_at,
        )

    def _items(self, execution: _Execution, unfinished: JobError) -> list[ItemResult]:
        if execution.plan is not None:
            return self._translator.results(execution.plan, unfinished)
        error = ItemError(code=unfinished.code.value, message=unfinished.message)
        items = execution.job.items if execution.job else ()
        return [
            ItemResult(id=item.id, error=error, usage=Usage(source_chars=len(item.text)))
            for item in items
        ]

    def _stored(self, execution: _Execution) -> TranslationResult:
        """A result whose content is unknown here: enough to repeat what follows a finish."""
        reply = execution.reply
        status = reply.status if reply and reply.status else JobStatus.COMPLETED
        return TranslationResult(
            job_id=execution.envelope.job_id,
            status=_terminal(status),
            document=execution.document,
        )

    def _result(
        self,
        execution: _Execution,
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


def _terminal(status: JobStatus) -> TerminalStatus:
    match status:
        case JobStatus.FAILED:
            return "failed"
        case JobStatus.CANCELLED:
            return "cancelled"
        case JobStatus.EXPIRED:
            return "expired"
        case _:
            return "completed"


def _error_info(failure: JobError) -> ErrorInfo:
    return ErrorInfo(
        code=failure.code.value,
        message=failure.message,
        retryable=failure.retryable,
        stage=failure.stage,
    )


def _sum(items: list[ItemResult]) -> Usage:
    return Usage(
        prompt_tokens=sum(item.usage.prompt_tokens for item in items),
        completion_tokens=sum(item.usage.completion_tokens for item in items),
        source_chars=sum(item.usage.source_chars for item in items),
        target_chars=sum(item.usage.target_chars for item in items),
    )


def _timing(execution: _Execution) -> Timing:
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


def _why_ended(held: JobInHand) -> JobError:
    if held.cancelled:
        return errors.Cancelled("cancelled while it ran")
    return errors.DeadlineExceeded("the deadline passed while it ran")


def _past_deadline(job: TranslationJob) -> bool:
    return job.deadline is not None and job.deadline <= datetime.now(UTC)


def _loop_time_of(job: TranslationJob | None) -> float | None:
    if job is None or job.deadline is None:
        return None
    left = (job.deadline - datetime.now(UTC)).total_seconds()
    return asyncio.get_running_loop().time() + left


def _ttl_s(job: TranslationJob | None) -> int:
    return DEFAULT_TTL_S if job is None or job.ttl_s is None else job.ttl_s


def _document_id(envelope: Envelope) -> str | None:
    document = envelope.fields.get("document")
    document_id = document.get("document_id") if isinstance(document, dict) else None
    return document_id if isinstance(document_id, str) else None
