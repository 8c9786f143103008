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
from dragoman_worker.errors import Halt, Internal, JobError
from dragoman_worker.flow import Flow
from dragoman_worker.flow.permits import Draining
from dragoman_worker.flow.planning import Turn
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight
from dragoman_worker.job.lookups import NOTHING, Known, Lookups
from dragoman_worker.job.opening import Opening, Openings
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.translator import RECALLED_AT_ONCE, Translator
from dragoman_worker.log import logger, where
from dragoman_worker.ports import Delivery
from dragoman_worker.process.journal import Stage

T = TypeVar("T")

_NO_DEFECT: Final = (Halt, asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
_POLL_CLAIMS_S: Final = 0.01


class Preparation:
    """Reads and plans deliveries. Raises nothing that one record alone could cause but JobError."""

    def __init__(
        self,
        *,
        planner: Planner,
        translator: Translator,
        lookups: Lookups,
        flow: Flow,
        in_flight: JobsInFlight,
        openings: Openings | None = None,
    ) -> None:
        self._planner = planner
        self._translator = translator
        self._lookups = lookups
        self._planning = flow.planning
        self._permits = flow.permits
        self._in_flight = in_flight
        self._openings = openings or Openings()

    async def read(self, delivery: Delivery) -> JobInFlight:
        """Return the record of the job with its id, fingerprint and replay; nothing is decoded yet.

        Raises InvalidJob if no id can be read, Poisoned if reading it killed too many processes,
        and Draining.
        """
        opening = self._openings.of(delivery)
        read = partial(_read, delivery, opening)
        try:
            async with self._planning.turn(_cost(delivery)) as turn:
                return await self._journaled(Stage.READING, opening, partial(turn.run, read))
        except UnreadableRecord as error:
            opening.done()
            raise errors.InvalidJob(str(error)) from None

    async def prepare(self, job: JobInFlight) -> None:
        """Decode the job and plan its first request, or keep the failure: it is claimed anyway.

        Raises Draining.
        """
        try:
            await self._prepare(job)
        except BaseException as error:  # noqa: BLE001  see as_defect
            if job.plan is not None:
                self._translator.dismiss(job.plan, None)
            job.prepared = _failure(job, error)

    async def _prepare(self, job: JobInFlight) -> None:
        opening, cost = job.opening, _cost(job.delivery)
        async with self._planning.turn(cost, job, opens=opening) as turn:
            work = partial(self._open, job, turn)
            plan = await self._journaled(Stage.PLANNING, opening, work)
        if plan is None:
            known = await self._look_up(job)
            async with self._planning.turn(cost, job, opens=opening) as turn:
                planning = partial(self._plan, job, known, turn)
                plan = await self._journaled(Stage.PLANNING, opening, planning)
        if plan.remembers:
            await self._recall(job, plan)

    async def _recall(self, job: JobInFlight, plan: Plan) -> None:
        """Recall and plan in turns, until a request is unknown; what is known needs no capacity."""
        while await self._translator.recall(plan):
            async with self._planning.turn(self._planner.size(plan), opens=job.opening) as turn:
                more = partial(self._translator.prepare, plan, turn, most=RECALLED_AT_ONCE)
                await self._journaled(Stage.PLANNING, job.opening, more)

    async def _journaled(
        self, stage: Stage, opening: Opening, work: Callable[[], Awaitable[T]]
    ) -> T:
        if opening.enter_now(stage):
            try:
                return await work()
            finally:
                opening.leave()
        async with self._at(stage, opening):
            return await work()

    async def _open(self, job: JobInFlight, turn: Turn) -> Plan | None:
        """Decode the job and plan it; None if something must be looked up before."""
        size = len(job.delivery.value or b"")
        job.decoded = await turn.run(partial(decode_job, job.envelope, size=size))
        if _is_past_deadline(job.decoded):
            raise errors.DeadlineExceeded("the deadline had passed")
        if self._lookups.needed(job.decoded):
            return None
        return await self._plan(job, NOTHING, turn)

    async def _look_up(self, job: JobInFlight) -> Known:
        decoded = _decoded(job)
        return await self._lookups.of(decoded, self._planner.languages(decoded))

    async def _plan(self, job: JobInFlight, known: Known, turn: Turn) -> Plan:
        job.prepared = plan = self._planner.open(
            _decoded(job),
            priority=job.delivery.topic,
            glossary=known.glossary,
            detections=known.detections,
            approved=known.approved,
        )
        await self._translator.prepare(plan, turn)
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


def as_defect(error: BaseException, **names: str) -> Internal:
    """Return the failure of a job that met a defect of the worker, and log its traceback location.

    Raises `error` again if it is no defect. BaseException, because Rust extensions panic with one.
    The text of the error stays out of log and result: it may quote a document.
    """
    if isinstance(error, _NO_DEFECT):
        raise error
    logger().error("job_broke", where=where(error), **names)
    return Internal(f"a defect of the worker: {where(error)}")


def _failure(job: JobInFlight, error: BaseException) -> JobError:
    """Return the failure to keep. Raises Draining, and what is no failure of a job."""
    match error:
        case InvalidRecord():
            return errors.JOB_ERRORS[error.code](str(error))
        case JobError():
            return error
        case Draining():
            raise error
        case _:
            return as_defect(error, job_id=job.envelope.job_id)


def _decoded(job: JobInFlight) -> TranslationJob:
    if job.decoded is None:
        raise errors.Internal("the job was not decoded")
    return job.decoded


def _replay(delivery: Delivery) -> int:
    """Return the replay that is asked for, 0 for none; an unusable header is logged."""
    replay = replay_of(delivery.headers)
    if not replay and any(name == HEADER_REPLAY for name, _ in delivery.headers):
        logger().warning("replay_ignored", place=delivery.origin)
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
