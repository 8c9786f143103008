"""How do items become translations? Run the plan's requests, judge the answers, ask again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import Final

from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.errors import (
    CutOff,
    EngineDead,
    Halt,
    JobError,
    PermanentEngineError,
    TransientEngineError,
)
from dragoman_worker.flow.permits import Draining, Permit, Permits
from dragoman_worker.flow.planned_tokens import PlannedTokens
from dragoman_worker.flow.slices import LARGE, Slices
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.retry import RetryPolicy
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Decoding, Engine, Generation, GenerationRequest

_NOT_SUCCESS: Final = {
    "length": "the translation was cut off at {max_tokens} tokens",
    "abort": "the engine aborted the generation",
    "error": "the engine reported an error for this generation",
    "repetition": "the translation ran into a loop",
}


class Translator:
    """Translates lists of items; knows no record, no store and no document."""

    def __init__(
        self,
        *,
        planner: Planner,
        engine: Engine,
        permits: Permits,
        planned: PlannedTokens,
        slices: Slices,
        retry: RetryPolicy,
        attempt_timeout_s: float,
        metrics: Metrics,
    ) -> None:
        self._planner = planner
        self._engine = engine
        self._permits = permits
        self._planned = planned
        self._slices = slices
        self._retry = retry
        self._attempt_timeout_s = attempt_timeout_s
        self._metrics = metrics

    def plan(self, job: TranslationJob, *, priority: str = "") -> Plan:
        """A plan with nothing planned yet. Raises the JobError that fails the whole job."""
        plan = self._planner.open(job)
        plan.priority = priority
        return plan

    async def prepare(self, plan: Plan) -> None:
        """Plan the first request, if there is any; the caller has had a turn for its first step."""
        plan.upcoming = self._at_once(plan) or await self._step(plan, has_turn=True)

    async def admit(self, plan: Plan) -> None:
        """Wait for the first request's permit: just before the job may enter the engine.

        Raises Draining when the worker is stopping. Undone by `run` or `dismiss`.
        """
        unit = plan.upcoming = plan.upcoming or await self._next(plan)
        if unit is not None:
            plan.first = await self._enter(plan, unit, starts_job=True)
            if self._permits.closed:  # between the grant and our turn
                raise Draining

    def dismiss(self, plan: Plan) -> None:
        """Give back the permit that nobody used, and the room of what still waits. Idempotent."""
        self._planned.forget(plan)
        if plan.first is not None:
            self._permits.release(plan.first)
            plan.first = None

    async def run(self, plan: Plan) -> None:
        """Fill every unit with its text or its error. Raises Halt; keeps what was done if cut."""
        plan.runs = True
        unit = plan.upcoming or await self._next(plan)
        plan.upcoming = None
        if unit is not None and plan.complete:  # the usual job: no task of its own
            await self._translate(plan, unit)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                while unit is not None:
                    tasks.create_task(self._translate(plan, unit))
                    unit = self._at_once(plan) or await self._next(plan)
        except ExceptionGroup as group:
            halts = (error for error in group.exceptions if isinstance(error, Halt))
            raise next(halts, group.exceptions[0]) from None

    async def _next(self, plan: Plan) -> Unit | None:
        """The next request, planned as soon as there is room for it; None at the end."""
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
            if has_turn or self._slices.may_run_now(size):
                has_turn = False
            else:
                await self._slices.wait_for_slice(size)
            if size > LARGE:
                unit = await self._slices.run(size, partial(self._planner.step, plan, timed=True))
            else:
                unit = self._planner.step(plan)
            if unit is not None:
                return self._waits(plan, unit)
        return None

    def _at_once(self, plan: Plan) -> Unit | None:
        """The next request if it is there without waiting: what most items are, so it is cheap."""
        if (
            plan.complete
            or not self._planned.free
            or not self._slices.may_run_now(self._planner.size(plan))
        ):
            return None
        unit = self._planner.step(plan)
        return None if unit is None else self._waits(plan, unit)

    def _waits(self, plan: Plan, unit: Unit) -> Unit:
        unit.waits = True
        self._planned.enter(plan, unit.tokens)
        return unit

    async def _translate(self, plan: Plan, unit: Unit) -> None:
        try:
            unit.text = await self._retry.run(lambda number: self._attempt(plan, unit, number))
        except JobError as error:
            unit.error = error
        unit.prompt_ids = ()

    async def _attempt(self, plan: Plan, unit: Unit, number: int) -> str:
        permit, plan.first = plan.first, None
        if permit is None:
            permit = await self._enter(plan, unit)
        if unit.last_error is not None:
            self._metrics.retries.labels(unit.last_error.code.value).inc()
        unit.attempts = number
        try:
            generation = await self._generate(plan, unit)
            return self._judge(plan, unit, generation)
        except JobError as error:
            unit.last_error = error
            raise
        finally:
            self._permits.release(permit)

    async def _enter(self, plan: Plan, unit: Unit, *, starts_job: bool = False) -> Permit:
        came = time.perf_counter()
        tokens = unit.tokens
        try:
            permit = await self._permits.acquire(
                plan.job.job_id, tokens, priority=plan.priority, starts_job=starts_job
            )
        finally:
            if unit.waits:
                unit.waits = False
                self._planned.leave(plan, tokens)
        self._metrics.engine_wait_seconds.observe(time.perf_counter() - came)
        return permit

    async def _generate(self, plan: Plan, unit: Unit) -> Generation:
        request = GenerationRequest(
            request_id=plan.job.job_id,
            prompt_ids=unit.prompt_ids,
            decoding=unit.decoding,
            source=unit.source,
            target_lang=plan.target_lang,
            attempt=unit.attempts,
        )
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._attempt_timeout_s):
                generation = await self._engine.generate(request)
        except EngineDead:
            self._permits.close()  # before ours is given back, and to whom would it go
            raise
        except TimeoutError:
            why = f"no answer within {self._attempt_timeout_s:g} s (retry.attempt_timeout_s)"
            if self._permits.in_quarantine(plan.job.job_id):
                # Asked again, it would keep everybody else out for as long once more.
                raise PermanentEngineError(f"{why}, in quarantine after crashes") from None
            raise TransientEngineError(why) from None
        if generation.completion_tokens:
            seconds = (time.perf_counter() - started) / generation.completion_tokens
            self._metrics.decode_seconds_per_token.observe(seconds)
        return generation

    def _judge(self, plan: Plan, unit: Unit, generation: Generation) -> str:
        unit.finish_reason = generation.finish_reason
        unit.prompt_tokens += generation.prompt_tokens
        unit.completion_tokens += generation.completion_tokens
        exact = unit.decoding.exact_length
        if generation.finish_reason == "stop" or (exact and generation.finish_reason == "length"):
            text = plan.profile.clean(generation.text, unit.source)
            if text.strip() or exact:
                return text.strip()
            error = TransientEngineError("the engine wrote nothing")
        elif generation.finish_reason == "length" and not _may_grow(unit):
            raise CutOff(
                f"the translation was cut off at {unit.decoding.max_tokens} tokens, and neither "
                "sampling.max_tokens, limits.max_tokens nor the model's context allows more"
            )
        else:
            why = _NOT_SUCCESS.get(generation.finish_reason, "the engine gave no reason")
            error = TransientEngineError(why.format(max_tokens=unit.decoding.max_tokens))
        unit.decoding = self._otherwise(unit, generation)
        raise error

    def _otherwise(self, unit: Unit, generation: Generation) -> Decoding:
        """The same request asked differently: greedy decoding would fail the same way again."""
        if generation.finish_reason == "length":
            longer = min(2 * unit.decoding.max_tokens, unit.most_tokens)
            return replace(unit.decoding, max_tokens=longer)
        if generation.finish_reason in {"repetition", "stop"}:
            return replace(
                unit.decoding,
                temperature=max(0.3, unit.decoding.temperature),
                frequency_penalty=min(1.0, unit.decoding.frequency_penalty + 0.3),
                seed=None if unit.decoding.seed is None else unit.decoding.seed + 1,
            )
        return unit.decoding


def _may_grow(unit: Unit) -> bool:
    return unit.decoding.max_tokens < unit.most_tokens
