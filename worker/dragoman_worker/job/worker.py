"""The worker: poll deliveries, execute them concurrently, settle each one."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from enum import StrEnum
from typing import Any, Final

from dragoman_schemas.results import TranslationResult
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import EngineDead, Halt, WorkerError
from dragoman_worker.flow.intake import Intake
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.executor import Executor
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight, Step
from dragoman_worker.job.outages import STORE, Outages
from dragoman_worker.job.outcome import Outcome, Released
from dragoman_worker.job.reporter import fields_of
from dragoman_worker.job.settling import EndLost, Settler
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Claim, Consumer, DeadLetters, Delivery, Results, Store
from dragoman_worker.tracing import Tracer

RELEASE_WITHIN_S: Final = 2.0
"""Longest wait of a stopping worker for Redis. An unreleased claim counts as a crash."""

LOOK_FOR_LOST_S: Final = 1.0


class WorkerState(StrEnum):
    """The states of a worker, in order."""

    WORKING = "working"
    DRAINING = "draining"
    STOPPED = "stopped"


class Worker:
    """Keeps as many jobs in flight as its bounds allow until it is stopped."""

    def __init__(
        self,
        *,
        consumer: Consumer,
        executor: Executor,
        store: Store,
        dead_letters: DeadLetters,
        results: Results | None,
        in_flight: JobsInFlight,
        permits: Permits,
        intake: Intake,
        outages: Outages,
        grace_s: float,
        metrics: Metrics,
        tracer: Tracer | None = None,
        log_jobs: bool = False,
    ) -> None:
        self._consumer = consumer
        self._executor = executor
        self._store = store
        self._settler = Settler(
            store=store,
            dead_letters=dead_letters,
            results=results,
            outages=outages,
            metrics=metrics,
        )
        self._in_flight = in_flight
        self._permits = permits
        self._intake = intake
        self._outages = outages
        self._grace_s = grace_s
        self._metrics = metrics
        self._tracer = tracer or Tracer()
        self._log_jobs = log_jobs
        self._log = logger()
        self._tasks: dict[asyncio.Task[None], Delivery] = {}
        self._changed = asyncio.Event()
        self._halt: BaseException | None = None
        self._deadline: Deadline | None = None
        self._runs = False
        self.state = WorkerState.WORKING
        self.polled_at = time.monotonic()
        """When the poll loop last iterated, on the monotonic clock; for the liveness check."""

    # --- life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until `stop`, then drain. Raises Halt or a defect, and completes nothing more."""
        cancels = asyncio.create_task(self._follow_cancels(), name="cancels")
        cancels.add_done_callback(self.side_task_ended)
        lost = asyncio.create_task(self._release_lost(), name="release-lost")
        lost.add_done_callback(self.side_task_ended)
        self._runs = True
        try:
            while self.working:
                await self._take_in()
            while self._halt is None and self._tasks and not self._out_of_time():
                await self._consumer.poll(Capacity(0))
                self.polled_at = time.monotonic()
                await self._change_within(0.25)
        finally:
            self._runs = False
            cancels.cancel()
            lost.cancel()
            await self._abandon()
            self.state = WorkerState.STOPPED
        if self._halt is not None:
            raise self._halt

    def stop(self) -> None:
        """Drain: start no job; finish those in the engine within the grace period."""
        if self.state is WorkerState.WORKING:
            self.state = WorkerState.DRAINING
            self._deadline = Deadline.after(self._grace_s)
            self._permits.drain()
            self._changed.set()
            self._log.info("draining", jobs=len(self._tasks), grace_s=self._grace_s)

    def abort(self) -> None:
        """Stop at once: unfinished jobs are released and will be delivered again."""
        self.stop()
        self._deadline = Deadline.after(0)
        self._changed.set()

    def halt(self, reason: BaseException) -> None:
        """Stop at once for a dead engine, an unreadable log or a defect."""
        first = self._halt is None  # with a dead engine every job in flight fails
        self._halt = reason if first else self._halt
        self._permits.close()
        self._changed.set()
        if first:
            # Errors of libraries may quote a document in their message.
            known = str(reason)[:500] if isinstance(reason, WorkerError) else None
            self._log.error("halting", where=where(reason), reason=known)

    @property
    def working(self) -> bool:
        """Whether the worker runs, and neither drains nor halts."""
        return self._runs and self._halt is None and self.state is WorkerState.WORKING

    # --- intake -----------------------------------------------------------------------------------

    async def _take_in(self) -> None:
        capacity = self._intake.capacity()
        for delivery in await self._consumer.poll(capacity):
            self._intake.enter(delivery.topic, _size(delivery))
            task = asyncio.create_task(self._work(delivery), name=delivery.origin)
            self._tasks[task] = delivery
            task.add_done_callback(self._task_ended)
        self.polled_at = time.monotonic()
        if capacity.jobs == 0:
            await self._change_within(0.25)

    def held(self) -> dict[int, set[int]]:
        """Return the offsets of the deliveries that tasks work on, by generation."""
        held: dict[int, set[int]] = defaultdict(set)
        for delivery in self._tasks.values():
            held[delivery.generation].add(delivery.offset)
        return held

    @property
    def has_capacity(self) -> bool:
        """Whether the worker polls for further deliveries now."""
        return self.state is WorkerState.WORKING and self._intake.capacity().jobs > 0

    async def _change_within(self, seconds: float) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        delivery = self._tasks.pop(task)
        self._intake.leave(delivery.topic, _size(delivery))
        self._changed.set()
        self.side_task_ended(task)

    def side_task_ended(self, task: asyncio.Task[None]) -> None:
        """Halt the worker if a background task failed. For `add_done_callback`.

        Libraries raise a CancelledError that nobody has requested (aiokafka, redis-py). A task that
        ends by one while the worker works left its job or its duty to nobody.
        """
        if task.cancelled():
            if self.working:
                self.halt(Halt(f"the task {task.get_name()} was cancelled, and not by this worker"))
        elif (error := task.exception()) is not None:
            self.halt(error)

    # --- work -------------------------------------------------------------------------------------

    async def _work(self, delivery: Delivery) -> None:
        trace = self._tracer.begin(delivery)
        if trace is None and not self._log_jobs:
            await self._do(delivery)
            return
        fields: dict[str, Any] = {"outcome": "stopped"}  # by a halt or the end of a drain
        try:
            fields = fields_of(await self._do(delivery))
        finally:
            if trace is not None:
                trace.end(fields)
        if self._log_jobs:
            self._log.info("job_ended", place=delivery.origin, **fields)

    async def _do(self, delivery: Delivery) -> Outcome:
        while True:
            outcome, held = await self._executor.execute(delivery)
            if held is not None:
                held.enter(Step.SETTLE)
            try:
                stands = await self._settle(delivery, outcome)
            except EndLost:
                self._log.warning("end_lost", place=delivery.origin)
                self._leave(held, None)
            else:
                self._leave(held, stands)
                return outcome

    async def _settle(self, delivery: Delivery, outcome: Outcome) -> TranslationResult | None:
        """Settle the outcome, complete the offset and return the result that duplicates share."""
        if isinstance(outcome, Released):
            self._log.debug("released", place=delivery.origin, reason=outcome.reason)
            return None
        stands = await self._settler.settle(delivery, outcome)
        self._consumer.complete(delivery)
        return stands

    def _leave(self, held: JobInFlight | None, stands: TranslationResult | None) -> None:
        if held is not None:
            self._metrics.settle_seconds.observe(held.enter(Step.SETTLE))
            self._in_flight.leave(held, stands)

    # --- cancels and shutdown ---------------------------------------------------------------------

    async def _follow_cancels(self) -> None:
        async for notice in self._store.cancels():
            if count := self._in_flight.cancel(notice):
                self._log.info("cancelling", jobs=count)

    async def _release_lost(self) -> None:
        """Release the claims of jobs whose partition was revoked; see docs/adr/0007.

        The work goes on, and the first terminal state wins. Without its claim a crash of this
        process can no longer make the job suspect.
        """
        while True:
            await asyncio.sleep(LOOK_FOR_LOST_S)
            for job in self._in_flight.lost(self._consumer.still_assigned):
                if (claim := job.claim) is not None:
                    await self._release(claim)
                    job.released = True

    def _out_of_time(self) -> bool:
        return self._deadline is not None and self._deadline.passed

    async def _abandon(self) -> None:
        """Cancel the remaining jobs and release their claims.

        Claims outlive only engine crashes, because poison detection counts them.
        """
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        claims = list(self._in_flight.claims())
        blamed = isinstance(self._halt, EngineDead) and self._halt.blames_jobs
        if claims and not blamed:
            self._log.info("releasing", jobs=len(claims))
            try:
                async with asyncio.timeout(RELEASE_WITHIN_S):
                    await asyncio.gather(*map(self._release, claims))
            except TimeoutError:
                self._log.warning("release_failed", jobs=len(claims))

    async def _release(self, claim: Claim) -> None:
        try:
            await self._outages.until_available(STORE, self._store.release, claim)
        except Exception as error:  # noqa: BLE001  the other claims are released anyway
            self._log.warning("release_failed", job_id=claim.job_id, where=where(error))


def _size(delivery: Delivery) -> int:
    return len(delivery.value or b"")
