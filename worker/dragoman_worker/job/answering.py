"""Answer one unit: recall it, share it with equal units, or generate and judge it until it passes.

The engine's own failures are retried below, by the Generator, with back-off. Here an answer that
fails gates is asked for again at once, otherwise than before (quality/remedies.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Final

from dragoman_text.gates import ONCE
from dragoman_text.verdicts import Candidate, Finding, Judgement
from dragoman_worker.errors import JobError
from dragoman_worker.flow import Flow
from dragoman_worker.flow.concurrent import together
from dragoman_worker.flow.permits import Permit
from dragoman_worker.job import assessments
from dragoman_worker.job.asking import Remedies
from dragoman_worker.job.assessments import Assessment, Attempt, QualityRules
from dragoman_worker.job.generating import Generator
from dragoman_worker.job.plan import Plan, PlannedItem, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.recall import Recall
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Judge
from dragoman_worker.quality import remedies
from dragoman_worker.quality.remedies import Wanted

_TOO_LONG: Final = frozenset({"length", "repetition"})
"""Finish reasons after which a shorter text may succeed."""
_ACTIONS: Final = {"fail": "failed", "warn": "warned", "fixed": "fixed"}


class Answers:
    """Fills units with texts that pass the gates, or with the best of several attempts."""

    def __init__(
        self,
        *,
        planner: Planner,
        generator: Generator,
        flow: Flow,
        rules: QualityRules,
        judge: Judge | None,
        recall: Recall | None,
        metrics: Metrics,
    ) -> None:
        self._planner = planner
        self._generator = generator
        self._permits = flow.permits
        self._planning = flow.planning
        self._remedies = Remedies(planner=planner, generator=generator, planning=flow.planning)
        self._rules = rules
        self._judge = judge
        self._recall = recall
        self._metrics = metrics

    def open(self, plan: Plan) -> None:
        """Set the rules by which the plan's answers are judged."""
        plan.rules = self._rules.of(plan.job.quality)

    async def recall(self, plan: Plan, units: Sequence[Unit]) -> None:
        """Fill those of the units that the memory knows, before they wait for a permit."""
        if self._recall is None or not plan.remembers:
            return
        await self._recall.fill(plan, units)
        for unit in units:
            if unit.text is not None:
                self._generator.leave_queue(plan, unit)

    async def answer(self, plan: Plan, unit: Unit, permit: Permit | None = None) -> None:
        """Fill the unit with its text or its error. `permit` is released.

        Raises Halt. If cancelled, the unit stays without a text.
        """
        try:
            if self._recall is None or not plan.remembers:
                await self._generate(plan, unit, permit)
            else:
                await self._share(plan, unit, permit, self._recall)
        except JobError as error:
            if not await self._answer_in_pieces(plan, unit):
                unit.error = error
        unit.prompt_ids, unit.flight = (), None

    async def judge_joined(self, plan: Plan) -> None:
        """Judge once more the items that were joined from pieces."""
        if not plan.rules.decide:
            return
        joined = [item for item in plan.items if item.in_pieces and item.answered]
        joined = [item for item in joined if item.translated]
        await together(self._judge_whole(plan, item) for item in joined)

    async def _judge_whole(self, plan: Plan, item: PlannedItem) -> None:
        judgement = await self._judged(_joined(plan, item))
        if judgement is not None:
            item.whole = assessments.assessment_of(Attempt(judgement, "native", 1), ())
            self._count(item.whole)

    async def _share(self, plan: Plan, unit: Unit, permit: Permit | None, recall: Recall) -> None:
        """Share an equal unit's answer, or generate the unit's own with a permit of its own.

        A unit waits for its permit whatever equal units do: one that is only waiting may wait for
        longer, as in a job of many items or a class of less weight.
        """
        if unit.flight is None:
            await self.recall(plan, [unit])
        followed = False
        while unit.text is None and not recall.shared(plan, unit):
            flight = recall.flight_of(plan, unit)
            if permit is None:
                permit = await self._generator.acquire(plan, unit, again=followed)
            elif flight.may_lead or self._in_quarantine(plan):
                await self._lead(plan, unit, permit, recall)
                return
            else:
                self._permits.release(permit)
                permit, followed = None, True
                await flight.follow()
        self._generator.leave_queue(plan, unit)
        if permit is not None:
            self._permits.release(permit)

    async def _lead(self, plan: Plan, unit: Unit, permit: Permit, recall: Recall) -> None:
        """Generate the unit; equal units may follow, except a job in quarantine.

        Such a job neither leads nor follows: in its round no other leader can enter the engine.
        """
        quarantined = self._in_quarantine(plan)
        with nullcontext() if quarantined else recall.flight_of(plan, unit).lead():
            await self._generate(plan, unit, permit)
            recall.answered(plan, unit)

    async def _generate(self, plan: Plan, unit: Unit, permit: Permit | None) -> None:
        """Generate the unit's text and, if the plan's rules say so, judge it.

        Raises the JobError of the first answer.
        """
        text = await self._generator.generate(plan, unit, permit)
        if self._judges(plan):
            await self._improve(plan, unit, text)
        else:
            unit.text = text

    async def _improve(self, plan: Plan, unit: Unit, text: str) -> None:
        """Ask again while the answer fails gates, at most `max_attempts` times; keep the best."""
        item = plan.items[unit.item]
        wanted = _wanted(plan, item, unit)
        tried, attempts = remedies.first(wanted), list[Attempt]()
        text, found = remedies.join(tried, [text])
        while True:
            judgement = await self._judged(_candidate(plan, item, unit, text), found)
            if judgement is None:
                break
            judgement = _excused(judgement, attempts)
            attempts.append(Attempt(judgement, tried.name, len(attempts) + 1))
            if not self._worth_another(plan, attempts):
                break
            tried = remedies.following(wanted, tried, judgement, len(attempts) + 1)
            answers = await self._remedies.ask(plan, unit, tried)
            if answers is None:
                break
            text, found = remedies.join(tried, answers)
        self._keep_best(plan, unit, attempts, text)

    def _worth_another(self, plan: Plan, attempts: Sequence[Attempt]) -> bool:
        if not plan.rules.decide or len(attempts) >= plan.rules.max_attempts:
            return False
        failed = attempts[-1].judgement.failed
        for finding in failed:
            self._metrics.gates.labels(finding.gate, "retried").inc()
        return bool(failed)

    def _keep_best(self, plan: Plan, unit: Unit, attempts: Sequence[Attempt], text: str) -> None:
        if not attempts:
            unit.text, unit.assessment = text, assessments.UNJUDGED
            return
        best = attempts[0]
        for attempt in attempts[1:]:
            if remedies.better(best.judgement, attempt.judgement) is attempt.judgement:
                best = attempt
        assessment = assessments.assessment_of(best, attempts[: best.number - 1])
        self._count(assessment)
        if not plan.rules.decide:
            unit.text = text
            return
        unit.text, unit.assessment = best.judgement.text, assessment

    async def _answer_in_pieces(self, plan: Plan, unit: Unit) -> bool:
        """Answer smaller units in place of one that was cut off; False if it has none."""
        if unit.finish_reason not in _TOO_LONG:
            return False
        item = plan.items[unit.item]
        size = self._planner.request_size(plan, unit, unit.source)
        smaller = partial(self._planner.smaller, plan, item, unit)
        pieces = await self._planning.run(size, smaller)
        if not pieces or item.error is not None:  # one that failed has no units any more
            return False
        item.replace(unit, pieces)
        for piece in pieces:
            if piece.text is None:
                await self.answer(plan, piece)
        return True

    def _in_quarantine(self, plan: Plan) -> bool:
        return self._permits.in_quarantine(plan.job.job_id)

    def _judges(self, plan: Plan) -> bool:
        return self._judge is not None and plan.rules.level != "off"

    async def _judged(
        self, candidate: Candidate, found: tuple[Finding, ...] = ()
    ) -> Judgement | None:
        """Return the judge's findings after those that were `found` in restoring the answer."""
        judgement = await self._judge.judge(candidate) if self._judge is not None else None
        if judgement is None or not found:
            return judgement
        return replace(judgement, findings=(*found, *judgement.findings))

    def _count(self, assessment: Assessment) -> None:
        for gate, check in assessment.checks.items():
            self._metrics.gates.labels(gate, _ACTIONS[check["verdict"]]).inc()


def _excused(judgement: Judgement, earlier: Sequence[Attempt]) -> Judgement:
    """Return the judgement with a warning for a gate that fails again but is to fail only once."""
    failed = {finding.gate for attempt in earlier for finding in attempt.judgement.failed}
    again = failed & ONCE
    if not again:
        return judgement
    findings = tuple(
        replace(finding, severity="warn") if finding.gate in again else finding
        for finding in judgement.findings
    )
    return replace(judgement, findings=findings)


def _candidate(plan: Plan, item: PlannedItem, unit: Unit, text: str) -> Candidate:
    return Candidate(
        source=unit.source,
        target=text,
        target_lang=plan.target_lang,
        source_lang=item.source_lang,
        strict=plan.rules.level == "strict",
        protected=unit.protected,
        words=plan.words(unit),
        terms=unit.terms,
        prompt=plan.prompted(item),
        max_chars=item.unit_max_chars,
    )


def _joined(plan: Plan, item: PlannedItem) -> Candidate:
    return Candidate(
        source=_blanked(item.item.text, item.uncut),
        target=_blanked(item.joined(plan.target_lang), item.uncut),
        target_lang=plan.target_lang,
        source_lang=item.source_lang,
        strict=plan.rules.level == "strict",
        max_chars=item.item.max_chars,
        joined=True,
    )


def _blanked(text: str, uncut: Sequence[str]) -> str:
    """Return the text with blanks in place of stretches that are in no language."""
    for stretch in uncut:
        text = text.replace(stretch, " " * len(stretch), 1)
    return text


def _wanted(plan: Plan, item: PlannedItem, unit: Unit) -> Wanted:
    return Wanted(
        source=unit.source,
        target_lang=plan.target_lang,
        source_lang=item.source_lang,
        protect=tuple(item.item.protect or ()),
        do_not_translate=tuple(plan.job.do_not_translate or ()),
        terms=unit.terms,
        max_chars=item.unit_max_chars,
        style=plan.rules.token_style,
        max_attempts=plan.rules.max_attempts,
    )
