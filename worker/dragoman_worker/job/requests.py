"""Requests to the engine for pieces of an item: rendered, tokenised, with their output budgets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_text.terms import Term
from dragoman_worker.errors import TooLong
from dragoman_worker.job import output_budget
from dragoman_worker.job.output_budget import OutputBudget
from dragoman_worker.job.plan import Plan, PlannedItem, Unit
from dragoman_worker.job.terms import occurring
from dragoman_worker.ports import Decoding, Engine
from dragoman_worker.prompts.base import (
    NOTHING_GIVEN,
    Profile,
    ProfileSampling,
    PromptInput,
    is_usual,
)

_SHORT: Final = "x"
_MOST_FRAMES: Final = 4_096
_HOTTEST: Final = 2.0


@dataclass(frozen=True, slots=True)
class Change:
    """How a request differs from the first one for the same item."""

    warmer: float = 0.0
    """Added to the temperature."""
    seed_step: int = 0
    """Added to the seed, if there is one."""
    correction: str | None = None
    """A sentence about the previous answer."""
    protected_tokens: bool = False
    """Whether numbered tokens stand in the text for protected pieces of it."""


UNCHANGED: Final = Change()


class Request(NamedTuple):
    """A unit, and what its prompt leaves out: one sentence each, for `warnings`."""

    unit: Unit
    warnings: tuple[str, ...] = ()


class Requests:
    """Makes units. Uses only the tokenizer and the limits of the engine."""

    def __init__(self, engine: Engine, *, max_tokens: int) -> None:
        self._engine = engine
        self._max_tokens = max_tokens
        self._budget = OutputBudget(engine.count_tokens)
        self._advised = lru_cache(maxsize=1024)(_advised)  # one frozen value serves many jobs
        self._frames: dict[Hashable, int] = {}
        """Tokens of usual prompts without their texts."""

    def make(
        self,
        plan: Plan,
        planned: PlannedItem,
        text: str,
        *,
        change: Change = UNCHANGED,
        whole: bool = False,
    ) -> Request | None:
        """Return the request for a text of the item, or None if it is too long for one.

        A `whole` text cannot be split: it may take all the output that context and policy allow,
        although its translation probably needs more.
        """
        core, before, after = framed(text)
        profile = plan.profile
        segment, terms, warnings = _segment(plan, planned, core, change)
        rendering = profile.render(segment)
        ids = self._engine.encode(rendering.prompt)
        tokens = self._source_tokens(profile, segment, len(ids))
        if profile.max_source_tokens is not None and tokens > profile.max_source_tokens:
            return None
        output = self._output(plan, segment, tokens, len(ids), whole=whole)
        if output is None:
            return None
        unit = Unit(
            core,
            ids,
            self._decoding(plan, output.first, change),
            before,
            after,
            most_tokens=output.most,
            expected_tokens=output.estimate,
            terms=terms,
            protected=occurring(planned.item.protect, plan.job.do_not_translate, core),
        )
        return Request(unit, (*rendering.warnings, *warnings))

    def too_long(self, plan: Plan, planned: PlannedItem, text: str) -> TooLong:
        """Return the error of a text that cannot be split, with all that decides."""
        segment, _, _ = _segment(plan, planned, text, UNCHANGED)
        tokens = self._engine.count_tokens(text)
        prompt = len(self._engine.encode(plan.profile.render(segment).prompt))
        most = plan.profile.max_source_tokens
        return TooLong(
            f"a stretch of {len(text)} characters that cannot be split has {tokens} "
            f"tokens; its prompt of {prompt} tokens and the translation must fit the model's "
            f"context of {self._engine.limits.max_model_len}"
            + (f", and profile {plan.profile.name} takes at most {most} at once" if most else "")
        )

    def _output(
        self, plan: Plan, segment: PromptInput, tokens: int, prompt: int, *, whole: bool
    ) -> _Output | None:
        """Return the output's budgets, or None if the translation would not fit."""
        expected = self._budget.expected(
            tokens, segment.text, segment.source_lang, segment.target_lang
        )
        most = min(self._max_tokens, self._engine.limits.max_model_len - prompt)
        asked = plan.job.sampling.max_tokens if plan.job.sampling is not None else None
        need = output_budget.needed(expected)
        if asked is not None:
            need, most = min(need, asked), min(most, asked)
        if most < (1 if whole else need):
            return None
        first = most if asked is not None else min(output_budget.cap(tokens, expected), most)
        return _Output(first, most, output_budget.estimate(tokens, expected))

    def _decoding(self, plan: Plan, max_tokens: int, change: Change) -> Decoding:
        decoding = self._advised(plan.profile.sampling, max_tokens)
        if plan.job.sampling is not None:
            given = plan.job.sampling.model_dump(exclude_none=True, exclude={"max_tokens"})
            decoding = replace(decoding, **given)
        if change.warmer:
            warmer = min(_HOTTEST, decoding.temperature + change.warmer)
            decoding = replace(decoding, temperature=warmer)
        if change.seed_step and decoding.seed is not None:
            decoding = replace(decoding, seed=decoding.seed + change.seed_step)
        return decoding

    def _source_tokens(self, profile: Profile, segment: PromptInput, prompt: int) -> int:
        """Return the tokens of the segment's text, from those of its prompt where possible.

        A prompt that nothing but the languages steers has the same tokens around every text. The
        difference may be wrong by a token at both ends. Counting the text took 9 % of planning.
        """
        if not is_usual(segment):
            return self._engine.count_tokens(segment.text)
        key = (profile.name, segment.source_lang, segment.target_lang, segment.formality)
        frame = self._frames.get(key)
        if frame is None:
            short = profile.render(segment._replace(text=_SHORT)).prompt
            frame = len(self._engine.encode(short)) - self._engine.count_tokens(_SHORT)
            if len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            self._frames[key] = frame
        return max(1, prompt - frame)


class _Output(NamedTuple):
    """Tokens of an output: the first cap, the largest that a retry may grow to, the estimate."""

    first: int
    most: int
    estimate: int


def framed(text: str) -> tuple[str, str, str]:
    """Return the text without the blanks around it, and the blanks before and behind it."""
    core = text.strip()
    if len(core) == len(text):
        return text, "", ""
    start = text.index(core)
    return core, text[:start], text[start + len(core) :]


def _advised(advice: ProfileSampling, max_tokens: int) -> Decoding:
    return Decoding(max_tokens=max_tokens, **asdict(advice))


def _segment(
    plan: Plan, planned: PlannedItem, text: str, change: Change
) -> tuple[PromptInput, tuple[Term, ...], tuple[str, ...]]:
    """Return what the profile renders, the glossary entries in the text, and warnings."""
    job, item = plan.job, planned.item
    terms, warnings = plan.terms.find(text, planned.source_lang) if plan.terms else ((), ())
    segment = PromptInput(
        text=text,
        target_lang=job.target_lang,
        source_lang=planned.source_lang,
        context=_context(job, item),
        glossary={term.source: term.targets[0] for term in terms} if terms else NOTHING_GIVEN,
        do_not_translate=tuple(job.do_not_translate or ()),
        protect=tuple(item.protect or ()),
        formality=job.formality or "default",
        instructions=tuple(job.instructions or ()),
        tokens=change.protected_tokens,
        correction=change.correction,
    )
    return segment, terms, warnings


def _context(job: TranslationJob, item: Item) -> str | None:
    """Return the contexts of the job and of the item, None if there is none."""
    if job.context is None:  # the usual job
        return item.context or None
    return "\n".join(context for context in (job.context, item.context) if context) or None
