"""Plan the requests of a job: one per item, or one per piece of an item that is too long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_text.detection import Detection
from dragoman_text.sentences import packed, split_sentences
from dragoman_text.spans import is_translatable
from dragoman_worker.errors import JobError, UnknownGlossary
from dragoman_worker.job.approvals import Approved
from dragoman_worker.job.plan import Plan, PlannedItem, Unit, certain_lang
from dragoman_worker.job.plan_costs import (
    OverBudget,
    item_steering_chars,
    over_budget,
    steering_chars,
)
from dragoman_worker.job.requests import Change, Request, Requests
from dragoman_worker.job.splitting import (
    assumed_lang,
    cut_off,
    few_sentences,
    in_place_of,
    is_kept,
    literals_of,
    stays_uncut,
    untranslated,
)
from dragoman_worker.job.terms import job_terms
from dragoman_worker.ports import Engine, StoredGlossary
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.table import ProfileChooser
from dragoman_worker.settings import WorkerSettings


class Planner:
    """Plans jobs. Uses only the tokenizer and the limits of the engine."""

    def __init__(
        self,
        *,
        engine: Engine,
        choose_profile: Callable[[str | None], Profile],
        max_tokens: int,
        budget_s: float = math.inf,
    ) -> None:
        self._requests = Requests(engine, max_tokens=max_tokens)
        self._choose_profile = choose_profile
        self._budget_s = budget_s

    def open(
        self,
        job: TranslationJob,
        *,
        priority: str = "",
        glossary: StoredGlossary | None = None,
        detections: Sequence[Detection | None] | None = None,
        approved: Sequence[Approved] | None = None,
    ) -> Plan:
        """Return a plan with no request yet. Raises the JobError that fails the whole job.

        `glossary` is the stored one that the job names, None if there is none. `detections` are
        those of the items, in order, if their language is not given; `approved` their approved
        translations, which need no request.
        """
        profile = self._choose_profile(job.profile)
        if job.glossary_id is not None and glossary is None:
            raise UnknownGlossary(
                f"glossary_id: there is no glossary {job.glossary_id!r}; `dragoman glossary list` "
                "shows those that are stored"
            )
        return Plan(
            job,
            profile,
            job.target_lang,
            _items(job, approved),
            priority=priority,
            terms=job_terms(job.glossary, glossary),
            detections=detections,
            steering_chars=steering_chars(job),
        )

    def languages(self, job: TranslationJob) -> frozenset[str] | None:
        """Return the base languages among which the job's items are. Raises UnknownProfile."""
        return self._choose_profile(job.profile).languages

    def plan(
        self, job: TranslationJob, detections: Sequence[Detection | None] | None = None
    ) -> Plan:
        """Return the whole plan at once. Raises the JobError that fails the whole job."""
        plan = self.open(job, detections=detections)
        while not plan.complete:
            self.step(plan)
        return plan

    def size(self, plan: Plan) -> int:
        """Return how many characters the next step reads, at least."""
        item = plan.items[plan.next_item].item
        return self._size(plan, item, item.text)

    def request_size(self, plan: Plan, unit: Unit, text: str) -> int:
        """Return how many characters a request for a text of the unit's item reads."""
        return self._size(plan, plan.items[unit.item].item, text)

    def _size(self, plan: Plan, item: Item, text: str) -> int:
        return plan.steering_chars + len(text) + item_steering_chars(item)

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
        if unit is not None:
            unit.item = plan.next_item
        if plan.pieces is None:
            self._complete(plan, planned)
        return unit

    def _complete(self, plan: Plan, planned: PlannedItem) -> None:
        planned.complete = True
        plan.next_item += 1

    def _within_budget(self, plan: Plan) -> None:
        now = time.thread_time()
        if plan.spent_s + now - (plan.step_began or now) > self._budget_s:
            raise OverBudget(over_budget(plan, self._budget_s))

    def request(
        self,
        plan: Plan,
        planned: PlannedItem,
        text: str,
        *,
        warmer: float = 0.0,
        seed_step: int = 0,
        correction: str | None = None,
        protected_tokens: bool = False,
    ) -> Unit:
        """Return any piece of an item's text as a request of its own. Raises TooLong.

        The temperature is raised by `warmer`, and the seed by `seed_step` if there is one.
        `correction` is a sentence about the previous answer; `protected_tokens` says that numbered
        tokens stand in the text for protected pieces. Profiles without instructions ignore both.
        """
        change = Change(warmer, seed_step, correction, protected_tokens)
        made = self._requests.make(plan, planned, text, change=change, whole=True)
        if made is None:
            raise self._requests.too_long(plan, planned, text)
        return made.unit

    def smaller(self, plan: Plan, planned: PlannedItem, unit: Unit) -> list[Unit] | None:
        """Split a unit whose answer was cut off into smaller ones; None if that cannot help.

        Joined, their sources are that of the unit. They carry the tokens and attempts spent on it.
        One that cannot be cut gives way to a unit that stays as it is.
        """
        chunks = None if _limited_by_job(plan, unit) else cut_off(plan, planned, unit)
        if chunks is None:
            return None
        if len(chunks) == 1:
            return in_place_of(unit, [untranslated(unit.source, uncut=True)])
        pieces = [self._piece(plan, planned, chunk) for chunk in chunks]
        return None if None in pieces else in_place_of(unit, [piece for piece in pieces if piece])

    def _begin(self, plan: Plan, planned: PlannedItem) -> Unit | None:
        """Return the item's request, or the first of its pieces, or None if it needs none."""
        text = planned.item.text
        if planned.approved is not None or not is_translatable(text):
            return None
        planned.source_lang = self._source_lang(plan, planned)
        whole = self._make(plan, planned, text)
        if whole is not None and few_sentences(plan, planned):
            return _kept(planned, whole)
        planned.in_pieces = True
        plan.pieces = self._pieces(plan, planned)
        return self._continue(plan, planned)

    def _continue(self, plan: Plan, planned: PlannedItem) -> Unit | None:
        unit = next(plan.pieces, None) if plan.pieces else None
        if unit is None:
            plan.pieces = None
        return unit

    def _source_lang(self, plan: Plan, planned: PlannedItem) -> str | None:
        found = plan.detections[plan.next_item] if plan.detections is not None else None
        certain = certain_lang(plan.job, found)
        if plan.job.source_lang is None:
            planned.detected = certain
        if certain is None and plan.profile.needs_source:
            return assumed_lang(plan, planned, found)
        return certain

    def _pieces(self, plan: Plan, planned: PlannedItem) -> Iterator[Unit]:
        made: dict[str, Request | Literal[False] | None] = {}

        def fits(chunk: str) -> bool:
            made[chunk] = self._make(plan, planned, chunk)
            return made[chunk] is not None

        literals = literals_of(plan, planned)
        for chunk in self._chunks(plan, planned, fits):
            found = made.get(chunk, False)
            made.clear()
            uncut = found is None and stays_uncut(chunk)
            if uncut or not is_translatable(chunk, literals):
                uncut = uncut and not is_kept(chunk, literals)
                planned.units.append(untranslated(chunk, uncut=uncut))
                continue
            piece = found or self._make(plan, planned, chunk, whole=True)
            if piece is None:
                raise self._requests.too_long(plan, planned, chunk)
            yield _kept(planned, piece)

    def _chunks(
        self, plan: Plan, planned: PlannedItem, fits: Callable[[str], bool]
    ) -> Iterator[str]:
        literals = literals_of(plan, planned)
        sentences = split_sentences(planned.item.text, planned.source_lang or "en", literals)
        most = plan.profile.max_source_sentences or len(sentences)
        for start in range(0, len(sentences), most):
            yield from packed(sentences[start : start + most], fits, literals)

    def _make(
        self, plan: Plan, planned: PlannedItem, text: str, *, whole: bool = False
    ) -> Request | None:
        if plan.step_began is not None:
            self._within_budget(plan)
        return self._requests.make(plan, planned, text, whole=whole)

    def _piece(self, plan: Plan, planned: PlannedItem, chunk: str) -> Unit | None:
        if not is_translatable(chunk):
            return untranslated(chunk)
        made = self._requests.make(plan, planned, chunk, whole=True)
        return made.unit if made is not None else None


def build_planner(
    settings: WorkerSettings,
    engine: Engine,
    choose_profile: ProfileChooser,
    *,
    budget_s: float = math.inf,
) -> Planner:
    """Return a planner for the engine; `budget_s` bounds the planning of one job."""
    return Planner(
        engine=engine,
        choose_profile=choose_profile,
        max_tokens=settings.limits.max_tokens,
        budget_s=budget_s,
    )


def _items(job: TranslationJob, approved: Sequence[Approved] | None) -> list[PlannedItem]:
    if approved is None:
        return [PlannedItem(item) for item in job.items]
    return [_item(item, found) for item, found in zip(job.items, approved, strict=True)]


def _item(item: Item, approved: Approved) -> PlannedItem:
    planned = PlannedItem(item, approved=approved.translation)
    if approved.refused is not None:
        why = f"memory: an approved translation is not used: {approved.refused}"
        planned.warnings.append(why)
    return planned


def _kept(planned: PlannedItem, request: Request) -> Unit:
    planned.units.append(request.unit)
    if request.warnings:
        planned.warnings = list(dict.fromkeys((*planned.warnings, *request.warnings)))
    return request.unit


def _fail_rest(plan: Plan, error: OverBudget) -> None:
    """Fail every item that is not planned completely, and plan nothing more."""
    for planned in plan.items[plan.next_item :]:
        planned.units.clear()
        planned.error, planned.complete = error, True
    plan.pieces, plan.next_item = None, len(plan.items)


def _limited_by_job(plan: Plan, unit: Unit) -> bool:
    """Return whether the job's own limit cut the answer off: the producer wants no more."""
    asked = plan.job.sampling.max_tokens if plan.job.sampling is not None else None
    return asked is not None and asked <= unit.most_tokens
