"""Run the requests of a plan: plan ahead, admit the job, answer every unit."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from dragoman_worker.flow.permits import Draining, Permit, Permits
from dragoman_worker.flow.planned_tokens import PlannedTokens
from dragoman_worker.flow.slices import LARGE, Slices
from dragoman_worker.job.answering import Answers
from dragoman_worker.job.generating import Generator
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.together import first_failure

RECALLED_AT_ONCE: Final = 64
"""Units that are looked up in the memory together, once the job's first one was found there."""


class Translator:
    """Translates lists of items; knows no record, no store and no document."""

    def __init__(
        self,
        *,
        planner: Planner,
        generator: Generator,
        answers: Answers,
        permits: Permits,
        planned: PlannedTokens,
        slices: Slices,
    ) -> None:
        self._planner = planner
        self._generator = generator
        self._answers = answers
        self._permits = permits
        self._planned = planned
        self._slices = slices

    async def prepare(self, plan: Plan) -> None:
        """Plan the first request, if any; the caller has waited for the turn of its first step."""
        self._answers.open(plan)
        unit = self._at_once(plan) or await self._step(plan, has_turn=True)
        plan.upcoming = [] if unit is None else [unit]

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

    async def prepare_more(self, plan: Plan) -> None:
        """Plan the next requests, as many as are looked up together.

        The caller has waited for the turn of the first step.
        """
        unit = await self._step(plan, has_turn=True)
        while unit is not None:
            plan.upcoming.append(unit)
            full = len(plan.upcoming) == RECALLED_AT_ONCE
            unit = None if full else await self._another(plan)

    async def _another(self, plan: Plan) -> Unit | None:
        """Return the next request if there is capacity for it now; else None."""
        if self._slices.tokenises and self._planned.free:
            return await self._step(plan, has_turn=True)
        return self._at_once(plan)

    async def admit(self, plan: Plan) -> Permit | None:
        """Wait for the permit of the first request; None if the engine is not needed.

        Raises Draining when the worker is stopping. Followed by `run` and `dismiss`.
        """
        if not plan.upcoming and (unit := await self._next(plan)) is not None:
            plan.upcoming = [unit]
        if not plan.upcoming:
            return None
        unit = plan.upcoming[0]
        permit = await self._generator.enter(plan, unit, starts_job=True)
        if self._permits.closed:  # between the grant and this turn of the loop
            self._permits.release(permit)
            raise Draining
        return permit

    def dismiss(self, plan: Plan, permit: Permit | None) -> None:
        """Release the first permit, if `run` did not, and the planned tokens. Idempotent.

        The plan may be admitted again, as that of a suspect in its round of the quarantine.
        """
        self._planned.forget(plan)
        for unit in plan.upcoming:
            unit.waits = 0
        if permit is not None:
            self._permits.release(permit)

    async def run(self, plan: Plan, permit: Permit | None = None) -> None:
        """Fill every unit with its text or its error; `permit` is that of the first request.

        Raises Halt. If cancelled, finished units keep their texts.
        """
        plan.runs = True
        unit = self._ready(plan) or await self._next(plan)
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
                    unit = self._ready(plan) or await self._next(plan)
        except ExceptionGroup as failures:
            raise first_failure(failures) from None

    def _ready(self, plan: Plan) -> Unit | None:
        """Return the next request if it is planned or can be at once; else None."""
        return plan.upcoming.pop(0) if plan.upcoming else self._at_once(plan)

    async def _next(self, plan: Plan) -> Unit | None:
        """Plan the next request as soon as there is capacity for it; None at the end."""
        if plan.complete:
            return None
        if not self._planned.free:
            await self._planned.wait_for_capacity(plan, runs=plan.runs)
        try:
            return await self._step(plan)
        finally:
            self._planned.admit_next()

    async def _step(self, plan: Plan, *, has_turn: bool = False) -> Unit | None:
        """Plan until there is another request; None at the end."""
        while not plan.complete:
            size = self._planner.size(plan)
            in_thread = size > LARGE or self._slices.tokenises
            if not (has_turn or in_thread or self._slices.may_run_now(size)):
                await self._slices.wait_for_slice(size)
            has_turn = False
            if in_thread:
                step = partial(self._planner.step, plan, timed=size > LARGE)
                unit = await self._slices.plan(size, step)
            else:
                unit = self._planner.step(plan)
            if unit is not None:
                return self._waits(plan, unit)
        return None

    def _at_once(self, plan: Plan) -> Unit | None:
        """Return the next request if it can be planned without waiting, as most can; else None."""
        if (
            plan.complete
            or not self._planned.free
            or not self._slices.may_plan_now(self._planner.size(plan))
        ):
            return None
        unit = self._planner.step(plan)
        return None if unit is None else self._waits(plan, unit)

    def _waits(self, plan: Plan, unit: Unit) -> Unit:
        unit.waits = unit.tokens
        self._planned.enter(plan, unit.waits)
        return unit
