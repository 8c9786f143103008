"""Answers are judged, asked for again, recalled, shared and reported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import ItemResult
from dragoman_text.masks import TAGS
from dragoman_text.verdicts import Candidate, Finding, Severity
from dragoman_worker.errors import EngineDead, PermanentEngineError, QualityFailed
from dragoman_worker.job.assessments import QualityRules
from dragoman_worker.job.item_results import first_failure, item_results
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.translator import Translator
from support.fakes.core import Core, record
from support.fakes.scripted_engine import Says
from support.fakes.scripted_judge import ScriptedJudge, judging

BASIC = QualityRules("basic", max_attempts=3, on_fail="fail")


def finds(
    gate: str, *texts: str, severity: Severity = "fail"
) -> Callable[[Candidate], Sequence[Finding]]:
    """Return a rule that finds a defect in these answers."""
    return lambda candidate: [Finding(gate, severity, "why")] if candidate.target in texts else []


def judged(
    rule: Callable[[Candidate], Sequence[Finding] | None], rules: QualityRules = BASIC
) -> Core:
    return Core(judge=judging(rule), rules=rules)


def job(text: Any, **fields: Any) -> TranslationJob:
    return TranslationJob.model_validate(json.loads(record(text=text, **fields)))


async def prepared(translate: Translator, plan: Plan) -> None:
    async with translate._planning.turn(1, plan) as turn:
        await translate.prepare(plan, turn)


async def run(core: Core, text: Any, **fields: Any) -> Plan:
    translate = core.build()[0]
    plan = translate._planner.open(job(text, **fields))
    await prepared(translate, plan)
    permit = await translate.acquire(plan)
    try:
        await translate.run(plan, permit)
    finally:
        translate.dismiss(plan, permit)
    return plan


async def only(core: Core, text: Any, **fields: Any) -> ItemResult:
    [item] = item_results(await run(core, text, **fields))
    return item


# --- verdicts -------------------------------------------------------------------------------------


async def test_the_judge_knows_what_the_model_read_besides_the_text() -> None:
    seen: list[Candidate] = []

    def note(candidate: Candidate) -> Sequence[Finding]:
        seen.append(candidate)
        return []

    await only(judged(note), "Hello", context="A letter to the tenants of a house.")
    assert "A letter to the tenants of a house." in seen[0].prompt


async def test_an_answer_without_findings_is_ok() -> None:
    item = await only(judged(lambda _: []), "one")
    assert (item.text, item.quality, item.checks, item.warnings) == ("ONE", "ok", {}, [])


async def test_a_warning_is_reported_with_the_gates_name_first() -> None:
    core = judged(finds("numbers", "ONE", severity="warn"))
    item = await only(core, "one")
    assert item.quality == "warn"
    assert item.checks == {"numbers": {"verdict": "warn", "detail": "why"}}
    assert item.warnings == ["numbers: why"]
    assert core.engine.asked("one") == 1


async def test_an_answer_that_fails_is_asked_for_again_warmer() -> None:
    core = judged(finds("length", "ONE"))
    core.engine.script("one", Says("ONE"), Says("EINS"))
    item = await only(core, "one")
    assert (item.text, item.quality, item.attempts) == ("EINS", "ok", 2)
    assert item.checks == {"length": {"verdict": "fixed", "remedy": "resample", "attempt": 2}}
    first, second = core.engine.requests
    assert second.decoding.temperature == pytest.approx(first.decoding.temperature + 0.2)
    assert (first.attempt, second.attempt) == (1, 2)


async def test_the_best_of_all_attempts_is_kept() -> None:
    def rule(candidate: Candidate) -> Sequence[Finding]:
        found = {"A": 2, "B": 1, "C": 3}[candidate.target]
        return [Finding(f"gate{number}", "fail", "why") for number in range(found)]

    core = judged(rule, QualityRules("basic", 3, "best_effort"))
    core.engine.script("one", Says("A"), Says("B"), Says("C"))
    item = await only(core, "one")
    assert (item.text, item.quality, item.fallback, item.attempts) == (
        "B",
        "fail",
        "best_effort",
        3,
    )
    assert item.checks["gate0"] == {
        "verdict": "fail", "detail": "why", "remedy": "resample", "attempt": 2,
    }  # fmt: skip


async def test_a_copy_that_comes_back_is_only_a_warning() -> None:
    core = judged(finds("copy", "ONE"))
    item = await only(core, "one")
    assert (item.text, item.quality, item.attempts) == ("ONE", "warn", 2)
    assert item.warnings == ["copy: why"]


async def test_usage_counts_every_answer() -> None:
    core = judged(finds("length", "ONE"))
    core.engine.script("one", Says("ONE", completion_tokens=3), Says("EINS", completion_tokens=4))
    item = await only(core, "one")
    assert item.usage.completion_tokens == 7


@pytest.mark.parametrize(
    ("on_fail", "text", "fallback"),
    [("fail", None, None), ("best_effort", "ONE", "best_effort"), ("source", "one", "source")],
)
async def test_an_item_that_keeps_failing_ends_as_the_job_asks(
    on_fail: Any, text: str | None, fallback: str | None
) -> None:
    core = judged(finds("length", "ONE"))
    plan = await run(core, "one", quality={"on_fail": on_fail, "max_attempts": 2})
    [item] = item_results(plan)
    assert (item.text, item.fallback, item.quality, item.attempts) == (text, fallback, "fail", 2)
    assert isinstance(first_failure(plan), QualityFailed) == (on_fail == "fail")
    assert (item.error is not None and item.error.code == "quality_failed") == (on_fail == "fail")


async def test_a_failure_names_the_gates() -> None:
    plan = await run(judged(finds("length", "ONE")), "one")
    failure = first_failure(plan)
    assert failure is not None
    assert "length" in failure.message


async def test_an_answer_that_cannot_be_judged_is_unchecked_and_says_so() -> None:
    item = await only(judged(lambda _: None), "one")
    assert (item.text, item.quality) == ("ONE", "unchecked")
    assert item.warnings[0].startswith("unjudged")


async def test_a_remedy_that_the_engine_refuses_keeps_the_answer_there_is() -> None:
    core = judged(finds("length", "ONE"), QualityRules("basic", 3, "best_effort"))
    core.engine.script("one", Says("ONE"), PermanentEngineError("no"))
    item = await only(core, "one")
    assert (item.text, item.quality) == ("ONE", "fail")


async def test_an_engine_that_dies_during_a_remedy_ends_the_run() -> None:
    core = judged(finds("length", "ONE"))
    core.engine.script("one", Says("ONE"), EngineDead("gone"))
    with pytest.raises(EngineDead):
        await run(core, "one")


async def test_quality_off_asks_no_judge() -> None:
    core = judged(finds("length", "ONE"))
    item = await only(core, "one", quality={"level": "off"})
    assert (item.text, item.quality) == ("ONE", "unchecked")
    assert isinstance(core.judge, ScriptedJudge)
    assert core.judge.judged == []


async def test_what_needs_no_translation_is_unchecked() -> None:
    core = judged(finds("length", "42"))
    assert (await only(core, "42")).quality == "unchecked"


async def test_strict_is_passed_to_the_gates() -> None:
    core = judged(lambda _: [])
    await run(core, "one", quality={"level": "strict"})
    assert isinstance(core.judge, ScriptedJudge)
    assert core.judge.judged[0].strict


async def test_findings_are_counted_by_what_followed() -> None:
    core = judged(finds("length", "ONE"))
    core.engine.script("one", Says("ONE"), Says("ONE"), Says("ONE"))
    await run(core, "one")
    count = core.metrics.registry.get_sample_value
    assert count("dragoman_gates_total", {"gate": "length", "action": "retried"}) == 2
    assert count("dragoman_gates_total", {"gate": "length", "action": "failed"}) == 1


async def test_a_gate_that_a_remedy_satisfied_is_counted_as_fixed() -> None:
    core = judged(finds("length", "ONE"))
    core.engine.script("one", Says("ONE"), Says("Two."))
    await run(core, "one")
    count = core.metrics.registry.get_sample_value
    assert count("dragoman_gates_total", {"gate": "length", "action": "fixed"}) == 1
    assert count("dragoman_gates_total", {"gate": "length", "action": "failed"}) is None


async def test_no_permit_is_held_while_an_answer_is_judged() -> None:
    held: list[int] = []

    def rule(_: Candidate) -> Sequence[Finding]:
        held.append(core.permits.held_items)
        return []

    core = judged(rule)
    await run(core, "one")
    assert held == [0]


async def test_a_cancelled_run_keeps_the_items_that_passed() -> None:
    core = judged(lambda _: [])
    core.engine.hold("two")
    translate = core.build()[0]
    plan = translate._planner.open(job(["one", "two"]))
    await prepared(translate, plan)
    permit = await translate.acquire(plan)
    running = asyncio.create_task(translate.run(plan, permit))
    await core.inside("two")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    translate.dismiss(plan, None)
    first, second = item_results(plan, QualityFailed("cut"))
    assert (first.text, first.quality) == ("ONE", "ok")
    assert second.text is None
    assert core.permits.held_items == 0


# --- protected text -------------------------------------------------------------------------------


def placeholder_rule(candidate: Candidate) -> Sequence[Finding]:
    lost = "%s" in candidate.source and "%S" in candidate.target
    return [Finding("placeholders", "fail", "%s is missing")] if lost else []


async def test_a_lost_placeholder_is_asked_for_as_a_token_and_restored() -> None:
    core = judged(placeholder_rule)
    item = await only(core, "hello %s")
    assert (item.text, item.quality) == ("HELLO %s", "ok")
    assert item.checks["placeholders"] == {"verdict": "fixed", "remedy": "tokens", "attempt": 2}
    assert core.engine.requests[1].source == f"hello {TAGS.token(0)}"


async def test_a_model_that_loses_every_token_gets_the_pieces_around_them() -> None:
    core = judged(placeholder_rule)
    core.engine.script(f"hello {TAGS.token(0)} you", Says("HELLO YOU"))
    item = await only(core, "hello %s you")
    assert item.text == "HELLO %s YOU"
    assert item.quality == "warn"
    assert any(warning.startswith("pieces") for warning in item.warnings)


@pytest.mark.parametrize(("most", "inside"), [(1, 1), (100_000, 4)])
async def test_the_pieces_of_a_remedy_count_as_planned_tokens(most: int, inside: int) -> None:
    core = judged(placeholder_rule, QualityRules("basic", max_attempts=2))
    core.max_planned_tokens = most
    item = await only(core, "one %s two %s three %s four")
    assert item.text == "ONE %s TWO %s THREE %s FOUR"
    assert core.engine.most_inside == inside


async def test_a_piece_of_a_remedy_that_is_cancelled_leaves_no_planned_tokens() -> None:
    core = judged(placeholder_rule, QualityRules("basic", max_attempts=2))
    core.engine.hold("two")
    translate = core.build()[0]
    plan = translate._planner.open(job("one %s two"))
    await prepared(translate, plan)
    running = asyncio.create_task(translate.run(plan, await translate.acquire(plan)))
    await core.inside("two")
    assert translate._planning.tokens.held > 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert translate._planning.tokens.held == 0


# --- items of several units -----------------------------------------------------------------------


def short_context() -> Core:
    core = judged(lambda _: [])
    core.max_tokens = 40
    return core


async def test_a_joined_item_is_judged_once_more_as_a_whole() -> None:
    core = short_context()
    core.judge = judge = judging(
        lambda candidate: [Finding("paragraphs", "warn", "why")] if candidate.joined else []
    )
    text = " ".join(f"This is sentence number {n} of a long text." for n in range(40))
    [item] = item_results(await run(core, text))
    assert len(core.engine.requests) > 1
    assert [candidate.joined for candidate in judge.judged].count(True) == 1
    assert judge.judged[-1].source == text
    assert judge.judged[-1].target == item.text
    assert item.quality == "warn"


async def test_one_failed_piece_fails_its_item() -> None:
    core = short_context()
    core.judge = judging(
        lambda candidate: (
            [Finding("length", "fail", "why")]
            if "NUMBER 7 " in candidate.target and not candidate.joined
            else []
        )
    )
    text = " ".join(f"This is sentence number {n} of a long text." for n in range(40))
    [item] = item_results(await run(core, text, quality={"on_fail": "source"}))
    assert (item.text, item.fallback, item.quality) == (text, "source", "fail")


async def test_attempts_at_a_text_that_was_cut_off_count() -> None:
    core = judged(lambda _: [])
    text = " ".join(f"This is sentence number {n} of a text." for n in range(6))
    core.engine.script(text, *[Says("CUT", "length")] * 3)
    [item] = item_results(await run(core, text))
    assert core.engine.asked(text) == 3
    assert len(core.engine.requests) > 4
    assert (item.text, item.attempts) == (text.upper(), 4)


async def test_a_joined_text_that_cannot_be_judged_is_unchecked() -> None:
    core = short_context()
    core.judge = judging(lambda candidate: None if candidate.joined else [])
    text = " ".join(f"This is sentence number {n} of a long text." for n in range(40))
    [item] = item_results(await run(core, text))
    assert item.quality == "unchecked"
    assert item.warnings[0].startswith("unjudged")
