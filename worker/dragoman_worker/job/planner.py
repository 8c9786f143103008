"""Plan the requests of a job: one per item, or one per piece of an item that is too long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Final

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_text.sentences import packed, split_sentences
from dragoman_text.spans import is_translatable
from dragoman_worker.errors import JobError, TooLong, UnknownGlossary
from dragoman_worker.job.plan import Plan, PlannedItem, Unit
from dragoman_worker.job.plan_costs import (
    OverBudget,
    item_steering_chars,
    over_budget,
    steering_chars,
)
from dragoman_worker.ports import Decoding, Engine
from dragoman_worker.prompts.base import Profile, ProfileSampling, Segment
from dragoman_worker.quality.language import LanguageDetector

LEAST_CONFIDENCE: Final = 0.1
"""Minimum confidence at which the detected language is reported; below it (usually a word or two)
it is only used internally."""
OUTPUT_PER_SOURCE_TOKEN: Final = 2.0
"""Output budget per source token: Mozilla's `max_tok_alpha` for translation by language models."""
OUTPUT_SLACK_TOKENS: Final = 64
"""Tokens added to every output budget, so that very short sources have room."""
LEAST_OUTPUT_PER_SOURCE_TOKEN: Final = 1.4
"""A text is split if the context leaves less room than this for its output."""


class Planner:
    """Renders and tokenises jobs. Uses only the tokenizer and the limits of the engine."""

    def __init__(
        self,
        *,
        engine: Engine,
        choose_profile: Callable[[str | None], Profile],
        max_tokens: int,
        exact_lengths: bool,
        detector: LanguageDetector,
        budget_s: float = math.inf,
    ) -> None:
        self._engine = engine
        self._choose_profile = choose_profile
        self._max_tokens = max_tokens
        self._exact_lengths = exact_lengths
        self._detector = detector
        self._budget_s = budget_s
        self._advised = lru_cache(maxsize=1024)(_advised)  # one frozen value serves many jobs

    def open(self, job: TranslationJob, *, priority: str = "") -> Plan:
        """Return a plan with no request yet. Raises the JobError that fails the whole job."""
        profile = self._choose_profile(job.profile)
        if job.glossary_id is not None:
            raise UnknownGlossary(
                f"glossary_id: there is no glossary {job.glossary_id!r}; "
                "give the terms in `glossary`"
            )
        items = [PlannedItem(item) for item in job.items]
        return Plan(
            job,
            profile,
            job.target_lang,
            items,
            priority=priority,
            steering_chars=steering_chars(job),
        )

    def plan(self, job: TranslationJob) -> Plan:
        """Return the whole plan at once. Raises the JobError that fails the whole job."""
        plan = self.open(job)
        while not plan.complete:
            self.step(plan)
        return plan

    def size(self, plan: Plan) -> int:
        """Return how many characters the next step reads, at least."""
        item = plan.items[plan.next_item].item
        return plan.steering_chars + len(item.text) + item_steering_chars(item)

    def step(self, plan: Plan, *, timed: bool = False) -> Unit | None:
        """Plan the next request, or an item that needs none. In any thread, one step at a time.

        An item's error is kept with it. A job whose `timed` steps take more CPU time than its
        budget fails with all items that are not planned by then. Small steps need no clock: the
        most that one job can have take two seconds together.
        """
        planned = plan.items[plan.next_item]
        plan.step_began = time.thread_time() if timed else None
        try:
            if timed:
                self._within_budget(plan)
            unit = self._continue(plan, planned) if plan.pieces else self._begin(plan, planned)
        except OverBudget as error:
            _fail_rest(plan, error)
            return None
        except JobError as error:  # the item's own: its neighbours go on
            planned.units.clear()
            planned.error, plan.pieces, unit = error, None, None
        finally:
            if plan.step_began is not None:
                plan.spent_s += time.thread_time() - plan.step_began
        if plan.pieces is None:
            self._complete(plan, planned)
        return unit

    def _complete(self, plan: Plan, planned: PlannedItem) -> None:
        if self._exact_lengths and (planned.units or planned.error):
            planned.warnings.append("engine.exact_lengths is on: this is no translation")
        planned.complete = True
        plan.next_item += 1

    def _within_budget(self, plan: Plan) -> None:
        now = time.thread_time()
        if plan.spent_s + now - (plan.step_began or now) > self._budget_s:
            raise OverBudget(over_budget(plan.job, self._budget_s))

    def _begin(self, plan: Plan, planned: PlannedItem) -> Unit | None:
        """Return the item's request, or the first of its pieces, or None if it needs none."""
        item = planned.item
        if not is_translatable(item.text):
            return None
        segment = _segment(plan.job, item, self._source_lang(plan, planned))
        whole = self._unit(plan, segment)
        if whole is not None and _few_sentences(segment, plan.profile.max_source_sentences):
            return _kept(planned, *whole)
        plan.pieces = self._pieces(plan, planned, segment)
        return self._continue(plan, planned)

    def _continue(self, plan: Plan, planned: PlannedItem) -> Unit | None:
        unit = next(plan.pieces, None) if plan.pieces else None
        if unit is None:
            plan.pieces = None
        return unit

    def _source_lang(self, plan: Plan, planned: PlannedItem) -> str | None:
        if plan.job.source_lang is not None:
            return plan.job.source_lang
        found = self._detector.detect(planned.item.text, plan.profile.languages)
        if found is not None and found.confidence >= LEAST_CONFIDENCE:
            planned.detected = found.language
        return found.language if found else None

    def _pieces(self, plan: Plan, planned: PlannedItem, segment: Segment) -> Iterator[Unit]:
        for chunk in self._chunks(plan, segment):
            if not is_translatable(chunk):
                planned.units.append(Unit(chunk, (), Decoding(max_tokens=0), text=chunk))
                continue
            piece = self._unit(plan, replace(segment, text=chunk))
            if piece is None:
                raise self._too_long(plan.profile, replace(segment, text=chunk))
            yield _kept(planned, *piece)

    def _chunks(self, plan: Plan, segment: Segment) -> Iterator[str]:
        def fits(chunk: str) -> bool:
            return self._unit(plan, replace(segment, text=chunk)) is not None

        sentences = split_sentences(segment.text, segment.source_lang or "en")
        most = plan.profile.max_source_sentences or len(sentences)
        whole = (*segment.do_not_translate, *segment.protect)
        for start in range(0, len(sentences), most):
            yield from packed(sentences[start : start + most], fits, whole)

    def _unit(self, plan: Plan, segment: Segment) -> tuple[Unit, tuple[str, ...]] | None:
        """Return one request and its warnings, or None if the text is too long for one."""
        if plan.step_began is not None:
            self._within_budget(plan)
        job, profile = plan.job, plan.profile
        core, before, after = _framed(segment.text)
        source_tokens = self._engine.count_tokens(core)
        if profile.max_source_tokens is not None and source_tokens > profile.max_source_tokens:
            return None
        rendering = profile.render(segment if core == segment.text else replace(segment, text=core))
        ids = self._engine.encode(rendering.prompt)
        room = self._engine.limits.max_model_len - len(ids)
        decoding = self._decoding(job, profile, source_tokens, room)
        if decoding.max_tokens < self._least_output(job, source_tokens):
            return None
        asked = job.sampling.max_tokens if job.sampling is not None else None
        most = min(self._max_tokens, room, asked or room)
        return Unit(core, ids, decoding, before, after, most), rendering.warnings

    def _least_output(self, job: TranslationJob, source_tokens: int) -> int:
        least = math.ceil(LEAST_OUTPUT_PER_SOURCE_TOKEN * source_tokens) + 8
        asked = job.sampling.max_tokens if job.sampling is not None else None
        return max(1, min(least, self._max_tokens, asked or least))

    def _decoding(
        self, job: TranslationJob, profile: Profile, source_tokens: int, room: int
    ) -> Decoding:
        budget = math.ceil(OUTPUT_PER_SOURCE_TOKEN * source_tokens) + OUTPUT_SLACK_TOKENS
        most = min(budget, self._max_tokens, room)
        decoding = self._advised(profile.sampling, most, self._exact_lengths)
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


def _kept(planned: PlannedItem, unit: Unit, warnings: tuple[str, ...]) -> Unit:
    planned.units.append(unit)
    if warnings:
        planned.warnings = list(dict.fromkeys((*planned.warnings, *warnings)))
    return unit


def _fail_rest(plan: Plan, error: OverBudget) -> None:
    """Fail every item that is not planned completely, and plan nothing more."""
    for planned in plan.items[plan.next_item :]:
        planned.units.clear()
        planned.error, planned.complete = error, True
    plan.pieces, plan.next_item = None, len(plan.items)


def _advised(advice: ProfileSampling, max_tokens: int, exact_length: bool) -> Decoding:
    return Decoding(max_tokens=max_tokens, exact_length=exact_length, **asdict(advice))


def _segment(job: TranslationJob, item: Item, source_lang: str | None) -> Segment:
    contexts = [context for context in (job.context, item.context) if context]
    return Segment(
        text=item.text,
        target_lang=job.target_lang,
        source_lang=source_lang,
        context="\n".join(contexts) or None,
        glossary=job.glossary or {},
        do_not_translate=tuple(job.do_not_translate or ()),
        protect=tuple(item.protect or ()),
        formality=job.formality or "default",
        instructions=tuple(job.instructions or ()),
    )


def _few_sentences(segment: Segment, most: int | None) -> bool:
    if most is None or len(segment.text) < 2 * most:  # a sentence has two characters at least
        return True
    return len(split_sentences(segment.text, segment.source_lang or "en")) <= most


def _framed(text: str) -> tuple[str, str, str]:
    core = text.strip()
    if len(core) == len(text):
        return text, "", ""
    start = text.index(core)
    return core, text[:start], text[start + len(core) :]
