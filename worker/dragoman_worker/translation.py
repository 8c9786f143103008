"""How do items become translations? Plan the requests, run them, judge the answers."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_schemas.results import ItemError, ItemResult, Usage
from dragoman_text.sentences import pack, split_sentences
from dragoman_text.spans import is_translatable
from dragoman_worker.errors import EngineStumbled, Halt, JobError, TooLong, UnknownGlossary
from dragoman_worker.metrics import Metrics
from dragoman_worker.permits import Permit, Permits
from dragoman_worker.ports import Decoding, Engine, Generation, GenerationRequest
from dragoman_worker.prompts.base import Profile, Segment
from dragoman_worker.quality.language import LanguageDetector
from dragoman_worker.retry import RetryPolicy

OUTPUT_PER_SOURCE_TOKEN: Final = 2.0
"""Output budget per source token: Mozilla's `max_tok_alpha` for translation by language models."""
OUTPUT_SLACK_TOKENS: Final = 64
"""Added to every budget, so that very short sources have room."""
LEAST_OUTPUT_PER_SOURCE_TOKEN: Final = 1.4
"""Below this room for the answer a text counts as too long for the context and is split."""

_NOT_SUCCESS: Final = {
    "length": "the translation was cut off at {max_tokens} tokens",
    "abort": "the engine aborted the generation",
    "error": "the engine reported an error for this generation",
    "repetition": "the translation ran into a loop",
}


@dataclass(slots=True, eq=False)
class Unit:
    """One request to the engine: an item, or a piece of an item that is too long for one."""

    source: str
    prompt_ids: Sequence[int]
    decoding: Decoding
    before: str = ""
    after: str = ""
    text: str | None = None
    error: JobError | None = None
    """Why it has no text, once that is final."""
    stumble: JobError | None = None
    """Why the last attempt gave none."""
    attempts: int = 0
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """What it may take of the KV cache: prompt and longest output, in tokens."""
        return len(self.prompt_ids) + self.decoding.max_tokens


@dataclass(slots=True, eq=False)
class PlannedItem:
    """One item of the job with its requests; none if it comes back unchanged or cannot be run."""

    item: Item
    units: list[Unit] = field(default_factory=list)
    detected: str | None = None
    warnings: list[str] = field(default_factory=list)
    error: JobError | None = None


@dataclass(slots=True, eq=False)
class Plan:
    """Everything a job needs from the engine, before anything has entered it."""

    job: TranslationJob
    profile: Profile
    target_lang: str
    items: list[PlannedItem]
    first: Permit | None = None

    @property
    def units(self) -> list[Unit]:
        """All requests, in the order of the items."""
        return [unit for item in self.items for unit in item.units]

    @property
    def pending(self) -> list[Unit]:
        """Those of them that the engine has yet to answer."""
        return [unit for unit in self.units if unit.text is None]

    def first_failure(self) -> JobError | None:
        """Why the first item that has no text has none."""
        failures = (_joined(item, None)[1] for item in self.items)
        return next((failure for failure in failures if failure is not None), None)


class Translator:
    """Translates lists of items; knows no record, no store and no document."""

    def __init__(
        self,
        *,
        engine: Engine,
        choose_profile: Callable[[str | None], Profile],
        permits: Permits,
        retry: RetryPolicy,
        attempt_timeout_s: float,
        max_tokens: int,
        exact_lengths: bool,
        detector: LanguageDetector,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._choose_profile = choose_profile
        self._permits = permits
        self._retry = retry
        self._attempt_timeout_s = attempt_timeout_s
        self._max_tokens = max_tokens
        self._exact_lengths = exact_lengths
        self._detector = detector
        self._metrics = metrics

    # --- plan -------------------------------------------------------------------------------------

    def plan(self, job: TranslationJob) -> Plan:
        """Render and tokenise every item. Raises the JobError that fails the whole job."""
        profile = self._choose_profile(job.profile)
        if job.glossary_id is not None:
            raise UnknownGlossary(
                f"glossary_id: there is no glossary {job.glossary_id!r}; "
                "give the terms in `glossary`"
            )
        plan = Plan(job, profile, job.target_lang, [])
        plan.items.extend(self._plan_item(job, profile, item) for item in job.items)
        return plan

    def _plan_item(self, job: TranslationJob, profile: Profile, item: Item) -> PlannedItem:
        planned = PlannedItem(item)
        if not is_translatable(item.text):
            return planned
        source_lang = job.source_lang
        if source_lang is None:
            found = self._detector.detect(item.text, profile.languages)
            source_lang = planned.detected = found.language if found else None
        segment = _segment(job, item, source_lang)
        try:
            for unit, warnings in self._units(job, profile, segment):
                planned.units.append(unit)
                planned.warnings = list(dict.fromkeys((*planned.warnings, *warnings)))
        except TooLong as error:
            planned.units.clear()
            planned.error = error
        if self._exact_lengths:
            planned.warnings.append("engine.exact_lengths is on: this is no translation")
        return planned

    def _units(
        self, job: TranslationJob, profile: Profile, segment: Segment
    ) -> Iterator[tuple[Unit, tuple[str, ...]]]:
        """The item's requests: one, or one for each piece if it is too long for one."""
        whole = self._unit(job, profile, segment)
        if whole is not None and _few_sentences(segment, profile.max_source_sentences):
            yield whole
            return
        for chunk in self._chunks(job, profile, segment):
            if not is_translatable(chunk):
                yield Unit(chunk, (), Decoding(max_tokens=0), text=chunk), ()
                continue
            piece = self._unit(job, profile, replace(segment, text=chunk))
            if piece is None:
                raise self._too_long(profile, replace(segment, text=chunk))
            yield piece

    def _chunks(self, job: TranslationJob, profile: Profile, segment: Segment) -> Iterator[str]:
        def fits(chunk: str) -> bool:
            return self._unit(job, profile, replace(segment, text=chunk)) is not None

        sentences = split_sentences(segment.text, segment.source_lang or "en")
        most = profile.max_source_sentences or len(sentences)
        for start in range(0, len(sentences), most):
            yield from pack(sentences[start : start + most], fits, segment.do_not_translate)

    def _unit(
        self, job: TranslationJob, profile: Profile, segment: Segment
    ) -> tuple[Unit, tuple[str, ...]] | None:
        """One request, or None if the text is too long for one."""
        core, before, after = _framed(segment.text)
        source_tokens = self._engine.count_tokens(core)
        if profile.max_source_tokens is not None and source_tokens > profile.max_source_tokens:
            return None
        rendering = profile.render(replace(segment, text=core))
        ids = self._engine.encode(rendering.prompt)
        room = self._engine.limits.max_model_len - len(ids)
        decoding = self._decoding(job, profile, source_tokens, room)
        if decoding.max_tokens < self._least_output(job, source_tokens):
            return None
        return Unit(core, ids, decoding, before, after), rendering.warnings

    def _least_output(self, job: TranslationJob, source_tokens: int) -> int:
        least = math.ceil(LEAST_OUTPUT_PER_SOURCE_TOKEN * source_tokens) + 8
        asked = job.sampling.max_tokens if job.sampling is not None else None
        return max(1, min(least, self._max_tokens, asked or least))

    def _decoding(
        self, job: TranslationJob, profile: Profile, source_tokens: int, room: int
    ) -> Decoding:
        advice = profile.sampling
        budget = math.ceil(OUTPUT_PER_SOURCE_TOKEN * source_tokens) + OUTPUT_SLACK_TOKENS
        decoding = Decoding(
            max_tokens=min(budget, self._max_tokens, room),
            temperature=advice.temperature,
            top_p=advice.top_p,
            top_k=advice.top_k,
            repetition_penalty=advice.repetition_penalty,
            frequency_penalty=advice.frequency_penalty,
            stop=advice.stop,
            stop_token_ids=advice.stop_token_ids,
            exact_length=self._exact_lengths,
        )
        if job.sampling is None:
            return decoding
        given = job.sampling.model_dump(exclude_none=True)
        if "max_tokens" in given:
            given["max_tokens"] = min(given["max_tokens"], self._max_tokens, room)
        return replace(decoding, **given)

    def _too_long(self, profile: Profile, segment: Segment) -> TooLong:
        tokens = self._engine.count_tokens(segment.text)
        prompt = len(self._engine.encode(profile.render(segment).prompt))
        most = profile.max_source_tokens
        return TooLong(
            f"a stretch of {len(segment.text)} characters that cannot be split has {tokens} "
            f"tokens; its prompt of {prompt} tokens and the translation must fit the model's "
            f"context of {self._engine.limits.max_model_len}"
            + (f", and profile {profile.name} takes at most {most} at once" if most else "")
        )

    # --- run --------------------------------------------------------------------------------------

    async def admit(self, plan: Plan) -> None:
        """Wait for the first item's permit: just before the job may enter the engine.

        Raises Draining when the worker is stopping. Undone by `run` or `dismiss`.
        """
        if pending := plan.pending:
            plan.first = await self._permits.acquire(
                plan.job.job_id, pending[0].tokens, starts_job=True
            )

    def dismiss(self, plan: Plan) -> None:
        """Give back the permit that `admit` took and nobody used. Idempotent."""
        if plan.first is not None:
            self._permits.release(plan.first)
            plan.first = None

    async def run(self, plan: Plan) -> None:
        """Fill every unit with its text or its error. Raises Halt; keeps what was done if cut."""
        units = plan.pending
        if len(units) == 1:  # the usual job: no task of its own
            await self._translate(plan, units[0])
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                for number, unit in enumerate(units):
                    name = f"{plan.job.job_id}/{number}"
                    tasks.create_task(self._translate(plan, unit), name=name)
        except ExceptionGroup as group:
            halts = (error for error in group.exceptions if isinstance(error, Halt))
            raise next(halts, group.exceptions[0]) from None

    async def _translate(self, plan: Plan, unit: Unit) -> None:
        try:
            unit.text = await self._retry.run(lambda number: self._attempt(plan, unit, number))
        except JobError as error:
            unit.error = error

    async def _attempt(self, plan: Plan, unit: Unit, number: int) -> str:
        permit, plan.first = plan.first, None
        if permit is None:
            permit = await self._permits.acquire(plan.job.job_id, unit.tokens)
        if unit.stumble is not None:
            self._metrics.retries.labels(unit.stumble.code.value).inc()
        unit.attempts = number
        try:
            generation = await self._generate(plan, unit)
            return self._judge(plan, unit, generation)
        except JobError as error:
            unit.stumble = error
            raise
        finally:
            self._permits.release(permit)

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
        except TimeoutError:
            raise EngineStumbled(
                f"no answer within {self._attempt_timeout_s:g} s (retry.attempt_timeout_s)"
            ) from None
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
            error = EngineStumbled("the engine wrote nothing")
        else:
            why = _NOT_SUCCESS.get(generation.finish_reason, "the engine gave no reason")
            error = EngineStumbled(why.format(max_tokens=unit.decoding.max_tokens))
        unit.decoding = self._otherwise(unit, generation)
        raise error

    def _otherwise(self, unit: Unit, generation: Generation) -> Decoding:
        """The same request asked differently: greedy decoding would fail the same way again."""
        if generation.finish_reason == "length":
            room = self._engine.limits.max_model_len - len(unit.prompt_ids)
            longer = max(1, min(2 * unit.decoding.max_tokens, self._max_tokens, room))
            return replace(unit.decoding, max_tokens=longer)
        if generation.finish_reason in {"repetition", "stop"}:
            return replace(
                unit.decoding,
                temperature=max(0.3, unit.decoding.temperature),
                frequency_penalty=min(1.0, unit.decoding.frequency_penalty + 0.3),
                seed=unit.attempts if unit.decoding.seed is None else unit.decoding.seed + 1,
            )
        return unit.decoding

    # --- results ----------------------------------------------------------------------------------

    def results(self, plan: Plan, unfinished: JobError | None = None) -> list[ItemResult]:
        """Each item's outcome, in order; items not done carry `unfinished`."""
        return [_item_result(item, unfinished) for item in plan.items]


def _segment(job: TranslationJob, item: Item, source_lang: str | None) -> Segment:
    contexts = [context for context in (job.context, item.context) if context]
    return Segment(
        text=item.text,
        target_lang=job.target_lang,
        source_lang=source_lang,
        context="\n".join(contexts) or None,
        glossary=job.glossary or {},
        do_not_translate=(*(job.do_not_translate or ()), *(item.protect or ())),
        formality=job.formality or "default",
        instructions=tuple(job.instructions or ()),
    )


def _few_sentences(segment: Segment, most: int | None) -> bool:
    if most is None or len(segment.text) < 2 * most:  # a sentence has two characters at least
        return True
    return len(split_sentences(segment.text, segment.source_lang or "en")) <= most


def _framed(text: str) -> tuple[str, str, str]:
    core = text.strip()
    start = text.index(core)
    return core, text[:start], text[start + len(core) :]


def _item_result(planned: PlannedItem, unfinished: JobError | None) -> ItemResult:
    item = planned.item
    text, error = _joined(planned, unfinished)
    units = planned.units
    return ItemResult(
        id=item.id,
        text=text,
        error=None if error is None else ItemError(code=error.code.value, message=error.message),
        detected_source_lang=planned.detected,
        warnings=planned.warnings,
        attempts=max((unit.attempts for unit in units), default=0),
        finish_reason=next(
            (unit.finish_reason for unit in reversed(units) if unit.finish_reason), None
        ),
        usage=Usage(
            prompt_tokens=sum(unit.prompt_tokens for unit in units),
            completion_tokens=sum(unit.completion_tokens for unit in units),
            source_chars=len(item.text),
            target_chars=len(text or ""),
        ),
    )


def _joined(
    planned: PlannedItem, unfinished: JobError | None
) -> tuple[str | None, JobError | None]:
    if planned.error is not None:
        return None, planned.error
    if not planned.units:
        return planned.item.text, None
    parts: list[str] = []
    for unit in planned.units:
        if unit.text is None:
            return None, unit.error or unfinished
        parts += (unit.before, unit.text, unit.after)
    return "".join(parts), None
