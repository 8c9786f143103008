"""Run the requests of a plan: plan ahead, acquire the first permit, answer every unit."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from dragoman_worker.flow import Flow
from dragoman_worker.flow.concurrent import first_failure
from dragoman_worker.flow.permits import Draining, Permit
from dragoman_worker.flow.planning import Turn
from dragoman_worker.flow.slices import LARGE
from dragoman_worker.job.answering import Answers
from dragoman_worker.job.assessments import NOT_JUDGED, QualityRules
from dragoman_worker.job.breaker import Breaker
from dragoman_worker.job.generating import Generator
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.recall import Recall
from dragoman_worker.job.retry import RetryPolicy
from dragoman_worker.memory.in_flight import Coalesced
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Engine, Judge, Memory
from dragoman_worker.settings import WorkerSettings

RECALLED_AT_ONCE: Final = 64
"""Units that are looked up in the memory together, once the job's first one was found there."""


class Translator:
    """Translates lists of items; knows no record, no store and no document."""

    def __init__(
        self, *, planner: Planner, generator: Generator, answers: Answers, flow: Flow
    ) -> None:
        self._planner = planner
        self._generator = generator
        self._answers = answers
        self._permits = flow.permits
        self._planning = flow.planning

    async def prepare(self, plan: Plan, turn: Turn, *, most: int = 1) -> None:
        """Plan a request, if any is left, and more up to `most` that need not wait, in one turn."""
        self._answers.open(plan)
        while not plan.complete and len(plan.upcoming) < most:
            size = self._planner.size(plan)
            if plan.upcoming and not turn.goes_on(size):
                break
            step = partial(self._planner.step, plan, timed=size > LARGE)
            self._add(plan, await turn.plan(size, step))

    async def recall(self, plan: Plan) -> bool:
        """Look the planned units up in the memory; return whether more are to be planned at once.

        That is so if all were found. One unit is looked up by itself: a job of which it is unknown
        is likely all new.
        """
        if not plan.remembers or not plan.upcoming:
            return False
        await self._answers.recall(plan, plan.upcoming)
        plan.upcoming = [unit for unit in plan.upcoming if unit.text is None]
        return not plan.upcoming and not plan.complete

    async def acquire(self, plan: Plan) -> Permit | None:
        """Acquire the permit of the first request; None if the engine is not needed.

        Raises Draining when the worker is stopping. Followed by `run` and `dismiss`.
        """
        if not plan.upcoming and (unit := await self._next(plan)) is not None:
            plan.upcoming = [unit]
        if not plan.upcoming:
            return None
        permit = await self._generator.acquire(plan, plan.upcoming[0], starts_job=True)
        if self._permits.closed:  # between the grant and this turn of the loop
            self._permits.release(permit)
            raise Draining
        return permit

    def dismiss(self, plan: Plan, permit: Permit | None) -> None:
        """Release the first permit, if `run` did not, and the planned tokens. Idempotent.

        The plan may be admitted again, as that of a suspect in its round of the quarantine.
        """
        self._planning.tokens.forget(plan)
        for unit in plan.upcoming:
            unit.waits = 0
        if permit is not None:
            self._permits.release(permit)

    async def run(self, plan: Plan, permit: Permit | None = None) -> None:
        """Fill every unit with its text or its error; `permit` is that of the first request.

        Raises Halt. If cancelled, finished units keep their texts.
        """
        unit = await self._next(plan)
        if unit is not None and plan.complete and not plan.upcoming:  # most jobs: no own task
            await self._answers.answer(plan, unit, permit)
        else:
            await self._run_all(plan, unit, permit)
        await self._answers.judge_joined(plan)

    async def _run_all(self, plan: Plan, unit: Unit | None, permit: Permit | None) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                while unit is not None:
                    tasks.create_task(self._answers.answer(plan, unit, permit))
                    permit = None
                    unit = await self._next(plan)
        except ExceptionGroup as failures:
            raise first_failure(failures) from None

    async def _next(self, plan: Plan) -> Unit | None:
        """Return the next request, planned as soon as it is the job's turn; None at the end."""
        while not plan.upcoming and not plan.complete:
            size = self._planner.size(plan)
            if self._planning.at_once(size):  # as most can
                self._add(plan, self._planner.step(plan))
            else:
                async with self._planning.turn(size, plan) as turn:
                    await self.prepare(plan, turn)
        return plan.upcoming.pop(0) if plan.upcoming else None

    def _add(self, plan: Plan, unit: Unit | None) -> None:
        """Let a planned request wait for its permit; None for an item that needs none."""
        if unit is not None:
            unit.waits = unit.tokens
            self._planning.tokens.enter(plan, unit.waits)
            plan.upcoming.append(unit)


def build_translator(
    settings: WorkerSettings,
    engine: Engine,
    planner: Planner,
    *,
    flow: Flow,
    breaker: Breaker,
    metrics: Metrics,
    outages: Outages | None = None,
    judge: Judge | None = None,
    memory: Memory | None = None,
) -> Translator:
    """Return a translator with the retries, the rules and the time limit that the settings give.

    Without a judge no answer is judged; without a memory none is recalled or shared.
    """
    retry = settings.retry
    generator = Generator(
        engine=engine,
        flow=flow,
        retry=RetryPolicy(attempts=retry.attempts, initial_s=retry.initial_s, max_s=retry.max_s),
        attempt_timeout_s=retry.attempt_timeout_s,
        breaker=breaker,
        outages=Outages() if outages is None else outages,
        metrics=metrics,
    )
    answers = Answers(
        planner=planner,
        generator=generator,
        flow=flow,
        rules=QualityRules.given(settings.quality) if judge is not None else NOT_JUDGED,
        judge=judge,
        recall=_recall(memory, engine, metrics),
        metrics=metrics,
    )
    return Translator(planner=planner, generator=generator, answers=answers, flow=flow)


def _recall(memory: Memory | None, engine: Engine, metrics: Metrics) -> Recall | None:
    if memory is None:
        return None
    joined = Coalesced(metrics.memory_by_result["joined"].inc)
    return Recall(memory, joined, engine=engine.identity)
