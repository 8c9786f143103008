"""Generate the text of one unit: permit, engine, and retries of the engine's own failures."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from dragoman_worker import tracing
from dragoman_worker.errors import (
    CutOff,
    EngineDead,
    EngineError,
    JobError,
    PermanentEngineError,
    TransientEngineError,
    Unavailable,
)
from dragoman_worker.flow import Flow
from dragoman_worker.flow.concurrent import TimeLimit
from dragoman_worker.flow.permits import Permit
from dragoman_worker.job.breaker import Breaker
from dragoman_worker.job.outages import ENGINE, Outages
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.retry import RetryPolicy
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Decoding, Engine, Generation, GenerationRequest

_SILENT_S: Final = 120.0
"""Longest that an engine without a sign of life is asked again. The watchdog ends it earlier."""
_NOT_SUCCESS: Final = {
    "length": "the translation was cut off at {max_tokens} tokens",
    "abort": "the engine aborted the generation",
    "error": "the engine reported an error for this generation",
    "repetition": "the translation ran into a loop",
}


class Generator:
    """Asks the engine for texts. Judges only whether the engine finished, not what it wrote."""

    def __init__(
        self,
        *,
        engine: Engine,
        flow: Flow,
        retry: RetryPolicy,
        attempt_timeout_s: float,
        breaker: Breaker,
        outages: Outages,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._permits = flow.permits
        self._tokens = flow.planning.tokens
        self._retry = retry
        self._attempt_timeout_s = attempt_timeout_s
        self._time_limit = TimeLimit(attempt_timeout_s)
        self._breaker = breaker
        self._outages = outages
        self._silent_asks = math.ceil(_SILENT_S / attempt_timeout_s)
        self._metrics = metrics

    async def acquire(
        self, plan: Plan, unit: Unit, *, starts_job: bool = False, again: bool = False
    ) -> Permit:
        """Acquire a permit for the unit. Raises Draining for one that would start its job.

        One that had a permit before, and acquires one `again`, is first among its job's units:
        others may follow it.
        """
        came = time.perf_counter()
        tokens = unit.tokens
        try:
            permit = await self._permits.acquire(
                plan.job.job_id,
                tokens,
                priority=plan.priority,
                starts_job=starts_job,
                first=again,
            )
        finally:
            self.leave_queue(plan, unit)
        self._metrics.engine_wait_seconds.observe(time.perf_counter() - came)
        return permit

    def leave_queue(self, plan: Plan, unit: Unit) -> None:
        """Count the unit no longer as one that is planned and waits for a permit. Idempotent."""
        if unit.waits:
            tokens, unit.waits = unit.waits, 0
            self._tokens.leave(plan, tokens)

    async def generate(self, plan: Plan, unit: Unit, first: Permit | None = None) -> str:
        """Return the text of the unit, cleaned; `first` is the permit of its first attempt.

        Raises the JobError of the last attempt, and Halt.
        """
        try:
            return await self._counted(plan, unit, first)
        except JobError as error:
            return await self._again(plan, unit, error)

    async def _again(self, plan: Plan, unit: Unit, error: JobError) -> str:
        try:
            return await self._retry.after(error, partial(self._counted, plan, unit, None))
        except EngineError:
            await self._breaker.confirm()
            raise

    async def _counted(self, plan: Plan, unit: Unit, permit: Permit | None) -> str:
        try:
            text = await self._attempt(plan, unit, permit)
        except EngineError:
            await self._breaker.failed()
            raise
        self._breaker.answered()
        return text

    async def _attempt(self, plan: Plan, unit: Unit, permit: Permit | None) -> str:
        if permit is None:
            permit = await self.acquire(plan, unit, again=unit.attempts > 0)
        if unit.last_error is not None:
            self._metrics.retries.labels(unit.last_error.code.value).inc()
        unit.attempts += 1
        answered = False
        try:
            generation = await self._generate(plan, unit)
            answered = True
            return self._text(plan, unit, generation)
        except JobError as error:
            unit.last_error = error
            raise
        finally:
            self._permits.release(permit, answered=answered)

    async def _generate(self, plan: Plan, unit: Unit) -> Generation:
        trace = tracing.current()
        call = None if trace is None else trace.engine_call(unit.attempts)
        if call is None:
            return await self._ask(plan, unit, None)
        error: str | None = "internal"
        tokens: tuple[int, int] | None = None
        try:
            generation = await self._ask(plan, unit, call.headers)
            error, tokens = None, (generation.prompt_tokens, generation.completion_tokens)
        except JobError as failure:
            error = failure.code.value
            raise
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        finally:
            call.end(error, tokens)
        return generation

    async def _ask(
        self, plan: Plan, unit: Unit, trace_headers: Mapping[str, str] | None
    ) -> Generation:
        request = GenerationRequest(
            request_id=plan.job.job_id,
            prompt_ids=unit.prompt_ids,
            decoding=unit.decoding,
            source=unit.source,
            target_lang=plan.target_lang,
            attempt=unit.attempts,
            trace_headers=trace_headers,
        )
        try:
            return await self._answered(request)
        except EngineDead:
            self._permits.close()  # before the release below grants it to another job
            raise
        except TimeoutError:
            why = f"no answer within {self._attempt_timeout_s:g} s (retry.attempt_timeout_s)"
            if self._permits.in_quarantine(plan.job.job_id):
                # A retry would keep all other jobs out of the engine for as long again.
                raise PermanentEngineError(f"{why}, in quarantine after crashes") from None
            raise TransientEngineError(why) from None

    async def _answered(self, request: GenerationRequest) -> Generation:
        """Return the engine's answer; while its server is away the request waits, as for Redis."""
        try:
            return await self._timed(request)
        except Unavailable:
            return await self._outages.until_available(ENGINE, self._timed, request)

    async def _timed(self, request: GenerationRequest) -> Generation:
        started = time.perf_counter()
        generation = await self._answer(request)
        if generation.completion_tokens:
            seconds = (time.perf_counter() - started) / generation.completion_tokens
            self._metrics.decode_seconds_per_token.observe(seconds)
        return generation

    async def _answer(self, request: GenerationRequest) -> Generation:
        """Return the engine's answer. Raises TimeoutError.

        A time-out during which the engine gave no sign of life is not the request's: it is asked
        again, without a further attempt, until the engine is found dead.
        """
        for _ in range(self._silent_asks):
            signs = self._engine.signs_of_life()
            try:
                return await self._time_limit.of(self._engine.generate(request))
            except TimeoutError:
                if self._engine.signs_of_life() != signs:
                    raise
        return await self._time_limit.of(self._engine.generate(request))

    def _text(self, plan: Plan, unit: Unit, generation: Generation) -> str:
        """Return the cleaned text of a finished generation; raise the error of any other."""
        unit.finish_reason = generation.finish_reason
        unit.prompt_tokens += generation.prompt_tokens
        unit.completion_tokens += generation.completion_tokens
        if generation.finish_reason == "stop":
            text = plan.profile.clean(generation.text, unit.source)
            if not _encodable(text):
                error = TransientEngineError("the engine wrote a lone surrogate")
            elif text.strip():
                return text.strip()
            else:
                error = TransientEngineError("the engine wrote nothing")
        elif generation.finish_reason == "length" and not _may_grow(unit):
            raise CutOff(
                f"the translation was cut off at {unit.decoding.max_tokens} tokens, and neither "
                "sampling.max_tokens, limits.max_tokens nor the model's context allows more"
            )
        else:
            why = _NOT_SUCCESS.get(generation.finish_reason, "the engine gave no reason")
            error = TransientEngineError(why.format(max_tokens=unit.decoding.max_tokens))
        unit.decoding = _otherwise(unit, generation)
        raise error


def _otherwise(unit: Unit, generation: Generation) -> Decoding:
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


def _encodable(text: str) -> bool:
    """Return whether UTF-8 can encode the text: no result could hold a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _may_grow(unit: Unit) -> bool:
    return unit.decoding.max_tokens < unit.most_tokens
