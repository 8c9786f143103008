"""What becomes of one delivery? Decode, take, translate: a straight line to an Outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Container, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from os import urandom
from typing import Final

from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.names import HEADER_REPLAY
from dragoman_schemas.scripts import Quarantine
from dragoman_schemas.wire import (
    Envelope,
    InvalidRecord,
    UnreadableRecord,
    decode_job,
    open_record,
    replay_of,
    rfc3339,
)
from dragoman_worker import errors
from dragoman_worker.errors import Halt, JobError
from dragoman_worker.flow.permits import Draining, Permits
from dragoman_worker.flow.planned_tokens import PlannedTokens
from dragoman_worker.flow.slices import LARGE, Slices
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight, Step
from dragoman_worker.job.opening import Opening, Openings
from dragoman_worker.job.outages import STORE, Outages
from dragoman_worker.job.outcome import Completed, Outcome, Rejected, Released
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.reporter import Execution, Reporter
from dragoman_worker.job.translator import Translator
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Claim, ClaimReply, ClaimRequest, Delivery, Store
from dragoman_worker.process.journal import Stage

DEFAULT_TTL_S: Final = 86_400
FEW_ITEMS: Final = 32
"""The result of more items is made beside the event loop; so many take a millisecond or two."""
_LOOK_FOR_CLAIMS_S: Final = 0.01
_Found = tuple[Envelope, int, str | None]
"""A record's envelope, its replay, and the id of its document."""
_CLAIMED: Final = frozenset({"run", "cancel", "poisoned"})
_NO_DEFECT: Final = (Halt, asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
_DECODE_ERRORS: Final = {
    kind.code: kind
    for kind in (errors.InvalidJob, errors.UnsupportedSchema, errors.UnsupportedLanguage)
}


class Executor:
    """Runs deliveries to their outcome; settles nothing."""

    def __init__(
        self,
        *,
        store: Store,
        translator: Translator,
        slices: Slices,
        planned: PlannedTokens,
        permits: Permits,
        in_flight: JobsInFlight,
        still_assigned: Callable[[Delivery], bool],
        outages: Outages,
        reporter: Reporter,
        metrics: Metrics,
        openings: Openings | None = None,
    ) -> None:
        self._store = store
        self._translator = translator
        self._slices = slices
        self._planned = planned
        self._permits = permits
        self._in_flight = in_flight
        self._still_assigned = still_assigned
        self._until_available = outages.until_available
        self._nonces = _nonces()
        self._reporter = reporter
        self._metrics = metrics
        self._openings = openings or Openings()

    async def execute(self, delivery: Delivery) -> tuple[Outcome, JobInFlight | None]:
        """The outcome, and the job in hand that the caller lets go once it is settled.

        Raises Halt alone. Cancelled, it leaves its take outstanding for the drain to release.
        """
        opening = self._openings.of(delivery)
        found = await self._read(delivery, opening)
        if not isinstance(found, tuple):
            return found, None
        envelope, replay, document_id = found
        key = (envelope.job_id, envelope.fingerprint, replay)
        while (duplicate := self._in_flight.find(key)) is not None:
            result = await asyncio.shield(duplicate.settled())
            if result is not None:
                return Completed(result, claim=None), None
        held = self._in_flight.enter(key, document_id)
        held.delivery = delivery
        execution = Execution(delivery, envelope, replay, held, opening)
        try:
            return await self._run(execution), held
        except BaseException as error:  # noqa: BLE001  see _defect
            execution.failure = _defect(error, job_id=envelope.job_id)
            return await self._refused(execution), held
        finally:
            if execution.plan is not None:
                self._translator.dismiss(execution.plan)

    async def _read(self, delivery: Delivery, opening: Opening) -> _Found | Outcome:
        """What must be known of a record before it can be claimed, or the outcome without that."""
        cost = _cost(delivery)
        if not self._slices.may_run_now(cost):
            # Not inside the opening: a record that waits would count as being opened.
            await self._slices.wait_for_slice(cost)
        try:
            if cost <= LARGE and opening.enter_now(Stage.READING):
                try:
                    return _fields(delivery)
                finally:
                    opening.leave()
            async with self._at(Stage.READING, opening):
                return await self._slices.run(cost, partial(_fields, delivery))
        except UnreadableRecord as error:
            opening.done()
            return Rejected(errors.InvalidJob(str(error)))
        except errors.Poisoned as failure:
            return Rejected(failure)
        except Draining:
            return Released("draining")
        except BaseException as error:  # noqa: BLE001  see _defect
            return Rejected(_defect(error, place=delivery.place))

    async def _refused(self, execution: Execution) -> Outcome:
        """The end of a job that met a defect of ours, under its id wherever it can be claimed."""
        try:
            if execution.held.claim is None:
                return await self._answer(execution, await self._claim(execution))
            return self._reporter.rejected(execution)
        except Draining:
            return Released("draining")
        except errors.Conflict as conflict:
            return Rejected(conflict, job_id=execution.envelope.job_id)
        except BaseException as error:  # noqa: BLE001  see _defect
            execution.failure = _defect(error, job_id=execution.envelope.job_id)
            return self._reporter.defective(execution)

    @asynccontextmanager
    async def _at(self, stage: Stage, opening: Opening) -> AsyncIterator[None]:
        """Begin one stage of an opening as soon as it may begin, and end it. Raises Poisoned.

        Inside, a suspect is by itself: a crash would leave the claims of all others behind.
        """
        async with (
            self._by_itself(opening) if opening.suspect else nullcontext(),
            opening.at(stage),
        ):
            yield

    @asynccontextmanager
    async def _by_itself(self, opening: Opening) -> AsyncIterator[None]:
        """Nobody is in the engine, and every job that has been in it is settled.

        A job with further items, or one that is asked again, keeps its claim while it waits for a
        permit: it goes on. Claims of later jobs are not waited for, or a stream of jobs that need
        no permit would never let the suspect begin; such a claim stands for milliseconds.
        """
        async with self._permits.quarantine(opening.name, by_itself=True):
            claims = {claim.nonce: claim.job_id for claim in self._in_flight.claims()}
            self._permits.let_finish(claims.values())
            while self._permits.held_items or self._outstanding(claims):  # noqa: ASYNC110  seldom
                await asyncio.sleep(_LOOK_FOR_CLAIMS_S)
            yield

    def _outstanding(self, nonces: Container[str]) -> bool:
        return any(claim.nonce in nonces for claim in self._in_flight.claims())

    async def _run(self, execution: Execution) -> Outcome:
        try:
            await self._decode(execution)
            self._metrics.decode_seconds.observe(execution.held.enter(Step.PERMIT))
            if execution.plan is not None and execution.failure is None:
                await self._translator.admit(execution.plan)
            if not self._still_assigned(execution.delivery):
                return Released("partition revoked")
            return await self._answer(execution, await self._claim(execution))
        except Draining:
            return Released("draining")
        except errors.Conflict as conflict:
            return Rejected(conflict, job_id=execution.envelope.job_id)

    async def _answer(self, execution: Execution, reply: ClaimReply) -> Outcome:
        match reply.verdict:
            case "run":
                return await self._translate(execution)
            case "done":
                return Completed(self._reporter.stored(execution), claim=None)
            case "conflict":
                why = "job_id: it belongs to another payload; give every job an id of its own"
                return Rejected(errors.Conflict(why), job_id=execution.envelope.job_id)
            case "cancel":
                return self._reporter.ended(execution, errors.Cancelled("cancelled before it ran"))
            case "poisoned":
                why = "the worker process died each time this record was being worked on"
                execution.failure = errors.Poisoned(why)
                return self._reporter.rejected(execution)
            case "suspect":
                return await self._quarantined(execution, reply)

    # --- steps ------------------------------------------------------------------------------------

    async def _decode(self, execution: Execution) -> None:
        """Read the job and plan its first request; a failure is kept: it is taken all the same."""
        delivery = execution.delivery
        if not self._planned.free:
            await self._planned.wait_for_capacity(execution)
        opening, cost = execution.opening, _cost(delivery)
        try:
            if not self._slices.may_run_now(cost):
                await self._slices.wait_for_slice(cost)
            if opening.enter_now(Stage.PLANNING):
                try:
                    await self._plan(execution, cost)
                finally:
                    opening.leave()
            else:
                async with self._at(Stage.PLANNING, opening):
                    await self._plan(execution, cost)
        except InvalidRecord as error:
            kind = _DECODE_ERRORS.get(error.code, errors.InvalidJob)
            execution.failure = kind(str(error))
        except JobError as error:
            execution.failure = error
        except Draining:
            raise
        except BaseException as error:  # noqa: BLE001  see _defect
            execution.failure = _defect(error, job_id=execution.envelope.job_id)
        finally:
            self._planned.admit_next()

    async def _plan(self, execution: Execution, cost: int) -> None:
        size = len(execution.delivery.value or b"")
        if cost <= LARGE:
            job = decode_job(execution.envelope, size=size)
        else:
            decode = partial(decode_job, execution.envelope, size=size)
            job = await self._slices.run(cost, decode)
        execution.job = job
        if not _past_deadline(job):
            execution.plan = self._translator.plan(job, priority=execution.delivery.topic)
            await self._translator.prepare(execution.plan)

    async def _claim(
        self, execution: Execution, quarantine: Quarantine = Quarantine.NONE
    ) -> ClaimReply:
        envelope, delivery = execution.envelope, execution.delivery
        execution.opening.done()
        claim = Claim(
            job_id=envelope.job_id,
            nonce=next(self._nonces),
            replay=execution.replay,
            ttl_s=_ttl_s(execution.job),
            fingerprint=envelope.fingerprint,
        )
        request = ClaimRequest(
            job_id=envelope.job_id,
            fingerprint=envelope.fingerprint,
            nonce=claim.nonce,
            place=delivery.place,
            replay=execution.replay,
            queued_at=rfc3339(delivery.timestamp_ms),
            document_id=execution.document.document_id if execution.document else None,
            quarantine=quarantine,
        )
        self._metrics.permit_seconds.observe(execution.held.enter(Step.CLAIM))
        execution.held.claim = claim  # before the call: a lost reply may hide a claim to release
        try:
            reply = await self._until_available(STORE, self._store.claim, request)
        except errors.Conflict:
            execution.held.claim = None
            raise
        self._metrics.claim_seconds.observe(execution.held.enter(Step.ENGINE))
        execution.held.claim = _claim(claim, reply)
        execution.reply = reply
        if reply.deliveries > 1:
            self._metrics.redeliveries.inc()
        return reply

    async def _give_back(self, execution: Execution) -> Outcome:
        """The partition went, or the engine died, while we asked: nothing has entered it."""
        if (claim := execution.held.claim) is not None:
            await self._until_available(STORE, self._store.release, claim)
            execution.held.claim = None
        return Released("not to be done here")

    async def _quarantined(self, execution: Execution, reply: ClaimReply) -> Outcome:
        """Run a suspect in a cohort of suspects, or by itself if a cohort died with it too."""
        if execution.plan is not None:
            self._translator.dismiss(execution.plan)
        wanted = Quarantine.wanted(reply.suspicions)
        by_itself = wanted is Quarantine.BY_ITSELF
        execution.held.enter(Step.PERMIT)
        async with self._permits.quarantine(execution.envelope.job_id, by_itself=by_itself):
            if self._permits.closed:
                raise Draining
            if not self._still_assigned(execution.delivery):
                return Released("partition revoked")
            reply = await self._claim(execution, wanted)
            if reply.verdict != "suspect":
                return await self._answer(execution, reply)
        return await self._quarantined(execution, reply)

    async def _translate(self, execution: Execution) -> Outcome:
        if self._permits.closed or not self._still_assigned(execution.delivery):
            return await self._give_back(execution)
        job, plan = execution.job, execution.plan
        if execution.failure is not None:
            return self._reporter.rejected(execution)
        if job is not None and plan is None:
            return self._reporter.ended(
                execution, errors.DeadlineExceeded("the deadline had passed")
            )
        if job is None or plan is None:
            raise AssertionError("a job that decoded has a plan, a deadline passed, or a failure")
        if execution.reply is not None and execution.reply.document_cancelled:
            return self._reporter.ended(execution, errors.Cancelled("its document was cancelled"))
        started = time.perf_counter()
        try:
            await self._run_plan(execution, plan)
        except TimeoutError:
            execution.engine_s = time.perf_counter() - started
            return self._reporter.ended(execution, _why_ended(execution.held))
        execution.engine_s = time.perf_counter() - started
        return await self._finished(execution, plan)

    async def _finished(self, execution: Execution, plan: Plan) -> Outcome:
        if len(plan.items) <= FEW_ITEMS:
            return self._reporter.finished(execution, plan)
        # Jobs that were let in together end together: 40 results of 512 items take 0.3 s.
        finished = partial(self._reporter.finished, execution, plan)
        return await self._slices.run(LARGE + len(plan.items), finished)

    async def _run_plan(self, execution: Execution, plan: Plan) -> None:
        """In one scope for the deadline and for cancels: TimeoutError when either ends it."""
        async with asyncio.timeout_at(_loop_time_of(execution.job)) as scope:
            execution.held.run_in(scope)  # a scope can be ended only once it has been entered
            try:
                await self._translator.run(plan)
            finally:
                execution.held.leave_scope()


def _nonces() -> Iterator[str]:
    """Nonces that no other executor has, in this process or any: 64 random bits and a number."""
    begin = urandom(8).hex()
    return (f"{begin}{number:016x}" for number in count())


def _fields(delivery: Delivery) -> _Found:
    """All that is read of a record before it is claimed. Raises UnreadableRecord."""
    if delivery.unreadable is not None:
        raise UnreadableRecord(f"the record cannot be read: {delivery.unreadable}")
    envelope = open_record(delivery.value)
    return envelope, _replay(delivery), _document_id(envelope)


def _replay(delivery: Delivery) -> int:
    """The replay that is asked for, 0 for none; a header that asks for none of them is logged."""
    replay = replay_of(delivery.headers)
    if not replay and any(name == HEADER_REPLAY for name, _ in delivery.headers):
        logger().warning("replay_ignored", place=delivery.place)
    return replay


def _cost(delivery: Delivery) -> int:
    """What opening a record costs, told as `Slices` tells it: a tenth of planning as much text."""
    return len(delivery.value or b"") // 10


def _defect(error: BaseException, **names: str) -> errors.Internal:
    """The failure of a job that ran into a defect of ours, by its place in the code.

    Raises `error` again if it is none. Rust extensions panic with a BaseException.
    """
    if isinstance(error, _NO_DEFECT):
        raise error
    logger().error("job_broke", where=where(error), **names)
    return errors.Internal(f"a defect of the worker: {where(error)}")


def _claim(claim: Claim, reply: ClaimReply) -> Claim | None:
    if reply.verdict not in _CLAIMED:
        return None
    return claim if reply.replays == claim.replay else replace(claim, replay=reply.replays)


def _why_ended(held: JobInFlight) -> JobError:
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
