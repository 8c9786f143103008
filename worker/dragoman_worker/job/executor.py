"""One delivery from its record to its outcome: prepare, claim, translate, in a straight line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from os import urandom
from typing import Final, assert_never

from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.scripts import ClaimAnswer, Quarantine, Verdict
from dragoman_schemas.wire import rfc3339
from dragoman_worker import errors, tracing
from dragoman_worker.errors import JobError
from dragoman_worker.flow import Flow
from dragoman_worker.flow.permits import Draining
from dragoman_worker.flow.slices import LARGE
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight, Step
from dragoman_worker.job.outages import STORE, Outages
from dragoman_worker.job.outcome import Completed, Outcome, Rejected, Released
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.preparation import Preparation, as_defect
from dragoman_worker.job.reporter import Reporter
from dragoman_worker.job.translator import Translator
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Claim, ClaimRequest, Delivery, Store

FEW_ITEMS: Final = 128
"""Results of more items are made in the thread; so many take less than a millisecond. The thread
costs a job of 64 items 4 % of its CPU, because the event loop waits for the GIL."""
_CLAIMED: Final = frozenset({Verdict.RUN, Verdict.CANCEL, Verdict.POISONED})


class Executor:
    """Runs deliveries to their outcome; settles nothing."""

    def __init__(
        self,
        *,
        store: Store,
        preparation: Preparation,
        translator: Translator,
        flow: Flow,
        in_flight: JobsInFlight,
        still_assigned: Callable[[Delivery], bool],
        outages: Outages,
        reporter: Reporter,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._preparation = preparation
        self._translator = translator
        self._planning = flow.planning
        self._permits = flow.permits
        self._in_flight = in_flight
        self._still_assigned = still_assigned
        self._until_available = outages.until_available
        self._nonces = _nonces()
        self._reporter = reporter
        self._metrics = metrics

    async def execute(self, delivery: Delivery) -> tuple[Outcome, JobInFlight | None]:
        """Return the outcome, and the job in flight that the caller removes once it is settled.

        Raises Halt alone. If cancelled, the claim stays outstanding for the drain to release.
        """
        job = await self._read(delivery)
        if not isinstance(job, JobInFlight):
            return job, None
        job.trace = tracing.current()
        while (duplicate := self._in_flight.find(job.key)) is not None:
            result = await asyncio.shield(duplicate.settled())
            if result is not None:
                return Completed(result, claim=None, ttl_s=job.ttl_s), None
        self._in_flight.enter(job)
        try:
            return await self._run(job), job
        except BaseException as error:  # noqa: BLE001  see as_defect
            return await self._fail(job, as_defect(error, job_id=job.envelope.job_id)), job
        finally:
            self._dismiss(job)
            job.drop_work()

    async def _read(self, delivery: Delivery) -> JobInFlight | Outcome:
        try:
            return await self._preparation.read(delivery)
        except JobError as failure:
            return Rejected(failure)
        except Draining:
            return Released("draining")
        except BaseException as error:  # noqa: BLE001  see as_defect
            return Rejected(as_defect(error, place=delivery.origin))

    async def _run(self, job: JobInFlight) -> Outcome:
        try:
            await self._preparation.prepare(job)
            self._metrics.decode_seconds.observe(job.enter(Step.PERMIT))
            if job.plan is not None:
                job.permit = await self._translator.acquire(job.plan)
            if not self._still_assigned(job.delivery):
                return Released("partition revoked")
            return await self._follow(job, await self._claim(job))
        except Draining:
            return Released("draining")
        except errors.Conflict as conflict:
            return Rejected(conflict, job_id=job.envelope.job_id)

    async def _fail(self, job: JobInFlight, defect: JobError) -> Outcome:
        """Fail a job that met a defect of the worker, under its id wherever it can be claimed."""
        try:
            if job.claim is None:
                self._dismiss(job)
                job.prepared = defect
                return await self._follow(job, await self._claim(job))
            return self._reporter.rejected(job, defect)
        except Draining:
            return Released("draining")
        except errors.Conflict as conflict:
            return Rejected(conflict, job_id=job.envelope.job_id)
        except BaseException as error:  # noqa: BLE001  see as_defect
            failure = as_defect(error, job_id=job.envelope.job_id)
            return self._reporter.defective(job, failure)

    def _dismiss(self, job: JobInFlight) -> None:
        """Return the permit and the planned tokens of a job that does not run (any more)."""
        if job.plan is not None:
            self._translator.dismiss(job.plan, job.permit)
            job.permit = None

    # --- the claim --------------------------------------------------------------------------------

    async def _claim(
        self, job: JobInFlight, quarantine: Quarantine = Quarantine.NONE
    ) -> ClaimAnswer:
        envelope, document = job.envelope, job.document
        job.opening.done()
        claim = Claim(
            job_id=envelope.job_id,
            fingerprint=envelope.fingerprint,
            nonce=next(self._nonces),
            replay=job.replay,
            ttl_s=job.ttl_s,
        )
        request = ClaimRequest(
            claim,
            origin=job.delivery.origin,
            queued_at=rfc3339(job.delivery.timestamp_ms),
            document_id=document.document_id if document else None,
            quarantine=quarantine,
        )
        self._metrics.permit_seconds.observe(job.enter(Step.CLAIM))
        job.claim = claim  # before the call: a lost reply may hide a claim to release
        try:
            answer = await self._until_available(STORE, self._store.claim, request)
        except errors.Conflict:
            job.claim = None
            raise
        self._metrics.claim_seconds.observe(job.enter(Step.ENGINE))
        job.claim = _claim_after(claim, answer)
        job.answer = answer
        if answer.deliveries > 1:
            self._metrics.redeliveries.inc()
        return answer

    async def _follow(self, job: JobInFlight, answer: ClaimAnswer) -> Outcome:
        """Do what the claim's verdict says."""
        match answer.verdict:
            case Verdict.RUN:
                return await self._translate(job)
            case Verdict.DONE:
                return Completed(self._reporter.stored(job), claim=None, ttl_s=job.ttl_s)
            case Verdict.CONFLICT:
                why = "job_id: another payload already uses it; give every job its own id"
                return Rejected(errors.Conflict(why), job_id=job.envelope.job_id)
            case Verdict.CANCEL:
                return self._reporter.ended(job, errors.Cancelled("cancelled before it ran"))
            case Verdict.POISONED:
                why = "the worker process died too often while this record was in the engine"
                return self._reporter.rejected(job, errors.Poisoned(why))
            case Verdict.SUSPECT:
                return await self._quarantined(job, answer)
            case _:
                assert_never(answer.verdict)

    async def _quarantined(self, job: JobInFlight, answer: ClaimAnswer) -> Outcome:
        """Run a suspect in a cohort of suspects, or by itself if a cohort died with it too."""
        self._dismiss(job)
        wanted = Quarantine.wanted(answer.suspicions)
        by_itself = wanted is Quarantine.BY_ITSELF
        job.enter(Step.PERMIT)
        async with self._permits.quarantine(job.envelope.job_id, by_itself=by_itself):
            if self._permits.closed:
                raise Draining
            if not self._still_assigned(job.delivery):
                return Released("partition revoked")
            answer = await self._claim(job, wanted)
            if answer.verdict is not Verdict.SUSPECT:
                return await self._follow(job, answer)
        return await self._quarantined(job, answer)

    async def _release(self, job: JobInFlight) -> Outcome:
        """Release a claim that came too late: nothing of the job has entered the engine."""
        if (claim := job.claim) is not None:
            await self._until_available(STORE, self._store.release, claim)
            job.claim = None
        return Released("partition revoked or engine dead")

    # --- the run ----------------------------------------------------------------------------------

    async def _translate(self, job: JobInFlight) -> Outcome:
        if self._permits.closed or not self._still_assigned(job.delivery):
            return await self._release(job)
        match job.prepared:
            case errors.DeadlineExceeded() as expired:
                return self._reporter.ended(job, expired)
            case JobError() as failure:
                return self._reporter.rejected(job, failure)
            case Plan() as plan:
                if job.answer is not None and job.answer.document_cancelled:
                    cancelled = errors.Cancelled("its document was cancelled")
                    return self._reporter.ended(job, cancelled)
                return await self._run_plan(job, plan)
            case _:
                assert_never(job.prepared)

    async def _run_plan(self, job: JobInFlight, plan: Plan) -> Outcome:
        try:
            await self._run_in_scope(job, plan)
        except TimeoutError:
            return self._reporter.ended(job, _why_ended(job))
        # Jobs that were admitted together finish together: 40 results of 512 items take 0.3 s.
        size = len(plan.items) if len(plan.items) <= FEW_ITEMS else LARGE + len(plan.items)
        return await self._planning.run(size, partial(self._reporter.finished, job, plan))

    async def _run_in_scope(self, job: JobInFlight, plan: Plan) -> None:
        """Run in one scope for the deadline and for cancels. Raises TimeoutError for either."""
        started = time.perf_counter()
        async with asyncio.timeout_at(_loop_time_of_deadline(plan.job)) as scope:
            job.run_in(scope)  # a scope can be expired only once it has been entered
            try:
                await self._translator.run(plan, job.permit)
            finally:
                job.engine_s = time.perf_counter() - started
                job.leave_scope()


def _nonces() -> Iterator[str]:
    """Yield nonces unique over all executors and processes: 64 random bits and a counter."""
    prefix = urandom(8).hex()
    return (f"{prefix}{number:016x}" for number in count())


def _claim_after(claim: Claim, answer: ClaimAnswer) -> Claim | None:
    """Return the claim that is outstanding after the script's answer, None if there is none."""
    if answer.verdict not in _CLAIMED:
        return None
    return claim if answer.replays == claim.replay else claim._replace(replay=answer.replays)


def _why_ended(job: JobInFlight) -> JobError:
    if job.cancelled:
        return errors.Cancelled("cancelled while it ran")
    return errors.DeadlineExceeded("the deadline passed while it ran")


def _loop_time_of_deadline(job: TranslationJob) -> float | None:
    if job.deadline is None:
        return None
    left = (job.deadline - datetime.now(UTC)).total_seconds()
    return asyncio.get_running_loop().time() + left
