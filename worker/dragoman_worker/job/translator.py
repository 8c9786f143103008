"""Run the requests of a plan: generate, judge the output, retry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Final

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

_TOO_LONG: Final = frozenset({"length", "repetition"})
"""Finish reasons after which a shorter text may succeed."""


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

    async def prepare(self, plan: Plan) -> None:
        """Plan the first request, if any; the caller has waited for the turn of its first step."""
        plan.upcoming = self._at_once(plan) or await self._step(plan, has_turn=True)

    async def admit(self, plan: Plan) -> Permit | None:
        """Wait for the permit of the first request; None if the engine is not needed.

        Raises Draining when the worker is stopping. Followed by `run` and `dismiss`.
        """
        unit = plan.upcoming = plan.upcoming or await self._next(plan)
        if unit is None:
            return None
        permit = await self._enter(plan, unit, starts_job=True)
        if self._permits.closed:  # between the grant and this turn of the loop
            self._permits.release(permit)
            raise Draining
        return permit

    def dismiss(self, plan: Plan, permit: Permit | None) -> None:
        """Release the first permit, if `run` did not, and the planned tokens. Idempotent."""
        self._planned.forget(plan)
        if permit is not None:
            self._permits.release(permit)

    async def run(self, plan: Plan, permit: Permit | None = None) -> None:
        """Fill every unit with its text or its error; `permit` is that of the first request.

        Raises Halt. If cancelled, finished units keep their texts.
        """
        plan.runs = True
        unit = plan.upcoming or await self._next(plan)
        plan.upcoming = None
        if unit is not None and plan.complete:  # most jobs: no task of its own
            await self._translate(plan, unit, permit)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                while unit is not None:
                    tasks.create_task(self._translate(plan, unit, permit))
                    permit = None
                    unit = self._at_once(plan) or await self._next(plan)
        except ExceptionGroup as group:
            halts = (error for error in group.exceptions if isinstance(error, Halt))
            raise next(halts, group.exceptions[0]) from None

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
        """Return the next request if it can be planned without waiting, as most can; else None."""
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

    async def _translate(self, plan: Plan, unit: Unit, first: Permit | None) -> None:
        def attempt(number: int) -> Awaitable[str]:
            return self._attempt(plan, unit, number, first if number == 1 else None)

        try:
            unit.text = await self._retry.run(attempt)
        except JobError as error:
            if not await self._translate_in_pieces(plan, unit):
                unit.error = error
        unit.prompt_ids = ()

    async def _translate_in_pieces(self, plan: Plan, unit: Unit) -> bool:
        """Translate smaller units in place of one that was cut off; False if it has none."""
        planned = next((item for item in plan.items if unit in item.units), None)
        if planned is None or unit.finish_reason not in _TOO_LONG:
            return False
        size, smaller = len(unit.source), partial(self._planner.smaller, plan, planned, unit)
        await self._slices.wait_for_slice(size)
        pieces = await self._slices.run(size, smaller)
        if not pieces:
            return False
        planned.replace(unit, pieces)
        for piece in pieces:
            if piece.text is None:
                await self._translate(plan, piece, None)
        return True

    async def _attempt(self, plan: Plan, unit: Unit, number: int, permit: Permit | None) -> str:
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
            self._permits.close()  # before the release below grants it to another job
            raise
        except TimeoutError:
            why = f"no answer within {self._attempt_timeout_s:g} s (retry.attempt_timeout_s)"
            if self._permits.in_quarantine(plan.job.job_id):
                # A retry would keep all other jobs out of the engine for as long again.
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
        """Return other decoding parameters: greedy decoding would fail in the same way again."""
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
