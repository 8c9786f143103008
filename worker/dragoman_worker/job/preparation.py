"""Everything before the claim: read the record, decode the job, plan its first request.

Each stage is journaled, so that a record that kills the process here is found (docs/adr/0013), and
is done in slices, so that it does not hold the event loop up (docs/adr/0014).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.names import HEADER_REPLAY
from dragoman_schemas.wire import (
    Envelope,
    InvalidRecord,
    UnreadableRecord,
    decode_job,
    open_record,
    replay_of,
)
from dragoman_worker import errors
from dragoman_worker.errors import JobError
from dragoman_worker.flow.permits import Draining, Permits
from dragoman_worker.flow.planned_tokens import PlannedTokens
from dragoman_worker.flow.slices import LARGE, Slices
from dragoman_worker.job.defects import as_defect
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight
from dragoman_worker.job.lookups import NOTHING, Known, Lookups
from dragoman_worker.job.opening import Opening, Openings
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.translator import Translator
from dragoman_worker.log import logger
from dragoman_worker.ports import Delivery
from dragoman_worker.process.journal import Stage

T = TypeVar("T")

_POLL_CLAIMS_S: Final = 0.01
_DECODE_ERRORS: Final = {
    kind.code: kind
    for kind in (errors.InvalidJob, errors.UnsupportedSchema, errors.UnsupportedLanguage)
}


class Preparation:
    """Reads and plans deliveries. Raises nothing that one record alone could cause but JobError."""

    def __init__(
        self,
        *,
        planner: Planner,
        translator: Translator,
        lookups: Lookups,
        slices: Slices,
        planned: PlannedTokens,
        permits: Permits,
        in_flight: JobsInFlight,
        openings: Openings | None = None,
    ) -> None:
        self._planner = planner
        self._translator = translator
        self._lookups = lookups
        self._slices = slices
        self._planned = planned
        self._permits = permits
        self._in_flight = in_flight
        self._openings = openings or Openings()

    async def read(self, delivery: Delivery) -> JobInFlight:
        """Return the record of the job with its id, fingerprint and replay; nothing is decoded yet.

        Raises InvalidJob if no id can be read, Poisoned if reading it killed too many processes,
        and Draining.
        """
        opening = self._openings.of(delivery)
        cost = _cost(delivery)
        if not self._slices.may_run_now(cost):
            # Outside the opening: a record that waits would count as being opened.
            await self._slices.wait_for_slice(cost)
        try:
            if cost <= LARGE and opening.enter_now(Stage.READING):
                try:
                    return _read(delivery, opening)
                finally:
                    opening.leave()
            async with self._at(Stage.READING, opening):
                return await self._slices.run(cost, partial(_read, delivery, opening))
        except UnreadableRecord as error:
            opening.done()
            raise errors.InvalidJob(str(error)) from None

    async def prepare(self, job: JobInFlight) -> None:
        """Decode the job and plan its first request, or keep the failure: it is claimed anyway.

        Raises Draining.
        """
        if not self._planned.free:
            await self._planned.wait_for_capacity(job)
        try:
            job.prepared = await self._staged(job)
        except InvalidRecord as error:
            job.prepared = _DECODE_ERRORS.get(error.code, errors.InvalidJob)(str(error))
        except JobError as error:
            job.prepared = error
        except Draining:
            raise
        except BaseException as error:  # noqa: BLE001  see as_defect
            job.prepared = as_defect(error, job_id=job.envelope.job_id)
        finally:
            self._planned.admit_next()

    async def _staged(self, job: JobInFlight) -> Plan | JobError:
        cost = _cost(job.delivery)
        plan = await self._in_stage(job, cost, partial(self._open, job, cost))
        if plan is None:
            known = await self._look_up(job)
            # Others may have taken the capacity meanwhile; without this, none would take it now.
            self._planned.admit_next()
            await self._planned.wait_for_capacity(job)
            plan = await self._in_stage(job, cost, partial(self._plan, job, known))
        if isinstance(plan, Plan) and plan.remembers:
            await self._recall(job, plan)
        return plan

    async def _recall(self, job: JobInFlight, plan: Plan) -> None:
        """Recall and plan in turns, until a request is unknown: each planning is journaled too."""
        try:
            while await self._translator.recall(plan):
                size = self._planner.size(plan)
                more = partial(self._translator.prepare_more, plan)
                await self._in_stage(job, size, more, begins=False)
        except BaseException:
            self._translator.dismiss(plan, None)
            raise

    async def _in_stage(
        self,
        job: JobInFlight,
        cost: int,
        work: Callable[[], Awaitable[T]],
        *,
        begins: bool = True,
    ) -> T:
        """Do `work`, journaled, once it may run; `begins` if it plans the job's first request."""
        if not self._slices.may_run_now(cost):
            await self._slices.wait_for_slice(cost)
        turns = self._slices.turns
        if turns is None or job.opening.suspect:  # a suspect waits for more than a turn
            return await self._journaled(job.opening, work)
        async with turns:
            if begins and not self._planned.free:  # others planned during the wait for the turn
                self._planned.admit_next()
                await self._planned.wait_for_capacity(job)
            return await self._journaled(job.opening, work)

    async def _journaled(self, opening: Opening, work: Callable[[], Awaitable[T]]) -> T:
        if opening.enter_now(Stage.PLANNING):
            try:
                return await work()
            finally:
                opening.leave()
        async with self._at(Stage.PLANNING, opening):
            return await work()

    async def _open(self, job: JobInFlight, cost: int) -> Plan | JobError | None:
        """Decode the job and plan it; None if something must be looked up before."""
        size = len(job.delivery.value or b"")
        if cost <= LARGE:
            decoded = decode_job(job.envelope, size=size)
        else:
            decode = partial(decode_job, job.envelope, size=size)
            decoded = await self._slices.run(cost, decode)
        job.decoded = decoded
        if _is_past_deadline(decoded):
            return errors.DeadlineExceeded("the deadline had passed")
        if self._lookups.needed(decoded):
            return None
        return await self._plan(job, NOTHING)

    async def _look_up(self, job: JobInFlight) -> Known:
        decoded = _decoded(job)
        return await self._lookups.of(decoded, self._planner.languages(decoded))

    async def _plan(self, job: JobInFlight, known: Known) -> Plan:
        plan = self._planner.open(
            _decoded(job),
            priority=job.delivery.topic,
            glossary=known.glossary,
            detections=known.detections,
            approved=known.approved,
        )
        try:
            await self._translator.prepare(plan)
        except BaseException:
            self._translator.dismiss(plan, None)
            raise
        return plan

    @asynccontextmanager
    async def _at(self, stage: Stage, opening: Opening) -> AsyncIterator[None]:
        """Enter a stage of an opening as soon as it may begin. Raises Poisoned.

        A suspect is opened while nothing is in the engine: a crash would leave the claims of all
        other jobs behind.
        """
        async with (
            self._by_itself(opening) if opening.suspect else nullcontext(),
            opening.at(stage),
        ):
            yield

    @asynccontextmanager
    async def _by_itself(self, opening: Opening) -> AsyncIterator[None]:
        """Wait until the engine is empty and every job that has been in it is settled.

        A job with further items, or one that is retried, keeps its claim while it waits for a
        permit: it goes on. Claims of later jobs are not waited for, or a stream of jobs that need
        no permit would never let the suspect begin; such a claim lasts for milliseconds.
        """
        async with self._permits.quarantine(opening.name, by_itself=True):
            claims = {claim.nonce: claim.job_id for claim in self._in_flight.claims()}
            self._permits.let_finish(claims.values())
            while self._permits.held_items or self._outstanding(claims):  # noqa: ASYNC110  rare
                await asyncio.sleep(_POLL_CLAIMS_S)
            yield

    def _outstanding(self, nonces: Container[str]) -> bool:
        return any(claim.nonce in nonces for claim in self._in_flight.claims())


def _read(delivery: Delivery, opening: Opening) -> JobInFlight:
    """Read all that the claim needs. Raises UnreadableRecord."""
    if delivery.unreadable is not None:
        raise UnreadableRecord(f"the record cannot be read: {delivery.unreadable}")
    envelope = open_record(delivery.value)
    return JobInFlight(delivery, envelope, _replay(delivery), _document_id(envelope), opening)


def _decoded(job: JobInFlight) -> TranslationJob:
    if job.decoded is None:
        raise errors.Internal("the job was not decoded")
    return job.decoded


def _replay(delivery: Delivery) -> int:
    """Return the replay that is asked for, 0 for none; an unusable header is logged."""
    replay = replay_of(delivery.headers)
    if not replay and any(name == HEADER_REPLAY for name, _ in delivery.headers):
        logger().warning("replay_ignored", place=delivery.place)
    return replay


def _document_id(envelope: Envelope) -> str | None:
    document = envelope.fields.get("document")
    document_id = document.get("document_id") if isinstance(document, dict) else None
    return document_id if isinstance(document_id, str) else None


def _cost(delivery: Delivery) -> int:
    """Return the cost of opening a record in the unit of `Slices`: a tenth of planning its text."""
    return len(delivery.value or b"") // 10


def _is_past_deadline(job: TranslationJob) -> bool:
    return job.deadline is not None and job.deadline <= datetime.now(UTC)
