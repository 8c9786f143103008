"""Requests are planned as they may enter, within the job's budget, however many items it has."""

from __future__ import annotations

import json

import pytest

from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.plan_costs import over_budget, steering_chars
from dragoman_worker.job.planner import Planner
from dragoman_worker.prompts.plain import PLAIN
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.scripted_engine import ScriptedEngine
from support.processes.waiting import eventually


async def test_only_what_may_soon_enter_is_planned() -> None:
    core = Core(permits=Permits(items=1, tokens=100_000), max_planned_tokens=100)
    held = core.engine.hold("item 0")
    core.consumer.append(record(text=[f"item {number}" for number in range(100)]))
    async with core.working():
        await core.inside("item 0")
        await eventually(lambda: core.permits.waiting > 0, timeout_s=TIMEOUT_S, what="some wait")
        assert core.permits.waiting < 10
        held.set()
        await core.all_completed()
    assert core.texts() == [f"ITEM {number}" for number in range(100)]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"text": ["one two"] * 500, "context": "x" * 8_000}, "context"),
        ({"text": "one two. " * 10_000}, "text"),
        (
            {"text": ["one"] * 500, "do_not_translate": [f"term number {n}" for n in range(200)]},
            "do_not_tra",
        ),
        (
            {"text": [{"text": "one", "protect": [f"term number {n}" for n in range(200)]}] * 90},
            "text.protect",
        ),
    ],
)
async def test_a_job_over_its_budget_is_too_long_and_told_which_field_costs(
    fields: dict[str, object], named: str
) -> None:
    core = Core(plan_budget_s=-1.0)
    core.consumer.append(record(**fields))  # type: ignore[arg-type]
    await core.run_all()
    result = core.state().result
    assert result is not None
    assert result.error is not None
    assert (result.status, result.error.code) == ("failed", "too_long")
    assert result.error.message.startswith(named)
    assert "limits.plan_budget_s" in result.error.message
    assert core.engine.requests == []


def test_terms_count_as_often_as_they_are_in_prompts() -> None:
    words = {f"term{number}": "x" * 200 for number in range(20)}
    fields = json.loads(record(text=[" ".join(words)] * 4, glossary=words, context="c" * 3_000))
    planner = Planner(
        engine=ScriptedEngine(),
        choose_profile=lambda _: PLAIN,
        max_tokens=4_096,
        exact_lengths=False,
    )
    plan = planner.open(TranslationJob.model_validate(fields))
    assert over_budget(plan, 1.0).startswith("context")
    planner.step(plan)
    assert over_budget(plan, 1.0).startswith("glossary")


def test_no_more_terms_than_a_prompt_takes_count_for_a_step() -> None:
    glossary = {f"term {number:03}": "x" for number in range(200)}
    job = TranslationJob.model_validate(json.loads(record(glossary=glossary)))
    assert steering_chars(job) == 50 * 9
