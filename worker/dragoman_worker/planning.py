"""What must the engine be asked for a job? One request an item, or one a piece that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Final

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_text.sentences import pack, split_sentences
from dragoman_text.spans import is_translatable
from dragoman_worker.errors import JobError, TooLong, UnknownGlossary
from dragoman_worker.plan import Plan, PlannedItem, Unit
from dragoman_worker.ports import Decoding, Engine
from dragoman_worker.prompts.base import Profile, ProfileSampling, Segment
from dragoman_worker.quality.language import LanguageDetector

LEAST_CONFIDENCE: Final = 0.1
"""Below it (a word or two, usually) a guess of the language is used, but not told."""
OUTPUT_PER_SOURCE_TOKEN: Final = 2.0
"""Output budget per source token: Mozilla's `max_tok_alpha` for translation by language models."""
OUTPUT_SLACK_TOKENS: Final = 64
"""Added to every budget, so that very short sources have room."""
LEAST_OUTPUT_PER_SOURCE_TOKEN: Final = 1.4
"""Below this room for the answer a text counts as too long for the context and is split."""


class Planner:
    """Renders and tokenises jobs; asks the engine for its tokenizer and limits alone."""

    def __init__(
        self,
        *,
        engine: Engine,
        choose_profile: Callable[[str | None], Profile],
        max_tokens: int,
        exact_lengths: bool,
        detector: LanguageDetector,
    ) -> None:
        self._engine = engine
        self._choose_profile = choose_profile
        self._max_tokens = max_tokens
        self._exact_lengths = exact_lengths
        self._detector = detector
        self._advised = lru_cache(maxsize=1024)(_advised)  # one frozen value serves many jobs

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
            source_lang = found.language if found else None
            if found is not None and found.confidence >= LEAST_CONFIDENCE:
                planned.detected = found.language
        segment = _segment(job, item, source_lang)
        try:
            for unit, warnings in self._units(job, profile, segment):
                planned.units.append(unit)
                if warnings:
                    planned.warnings = list(dict.fromkeys((*planned.warnings, *warnings)))
        except JobError as error:  # the item's own: its neighbours go on
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
    if len(core) == len(text):
        return text, "", ""
    start = text.index(core)
    return core, text[:start], text[start + len(core) :]
