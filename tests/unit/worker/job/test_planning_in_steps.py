"""Requests are planned as they may enter, within the job's budget, however many items it has."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence

import pytest

from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.opening import Openings
from dragoman_worker.job.plan_costs import over_budget, steering_chars
from dragoman_worker.job.planner import Planner
from dragoman_worker.ports import Prompt
from dragoman_worker.process.journal import Stage
from dragoman_worker.prompts.plain import PLAIN
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.scripted_engine import ScriptedEngine
from support.processes.waiting import eventually


@pytest.mark.parametrize("tokenises", [False, True])
async def test_only_what_may_soon_enter_is_planned(tokenises: bool) -> None:
    permits = Permits(items=1, tokens=100_000)
    core = Core(permits=permits, max_planned_tokens=100, tokenises=tokenises)
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
    )
    plan = planner.open(TranslationJob.model_validate(fields))
    assert over_budget(plan, 1.0).startswith("context")
    planner.step(plan)
    assert over_budget(plan, 1.0).startswith("glossary")


def test_no_more_terms_than_a_prompt_takes_count_for_a_step() -> None:
    glossary = {f"term {number:03}": "x" for number in range(200)}
    job = TranslationJob.model_validate(json.loads(record(glossary=glossary)))
    assert steering_chars(job) == 50 * 9


class _Held(ScriptedEngine):
    """An engine whose tokenizer waits."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def encode(self, prompt: Prompt) -> Sequence[int]:
        self.go_on.wait(TIMEOUT_S)
        return super().encode(prompt)


class _Watched(Openings):
    """Openings that know which records are being planned."""

    def __init__(self) -> None:
        super().__init__()
        self.planning: set[int] = set()
        self.most = 0

    def enter_now(self, name: str, stage: Stage) -> int | None:
        slot = super().enter_now(name, stage)
        if slot is not None and stage is Stage.PLANNING:
            self.planning.add(slot)
            self.most = max(self.most, len(self.planning))
        return slot

    def leave(self, slot: int) -> None:
        self.planning.discard(slot)
        super().leave(slot)


async def test_few_records_count_as_being_opened_while_the_planning_thread_is_busy() -> None:
    """All that do would be suspects after a crash, and be opened one at a time."""
    engine, openings = _Held(), _Watched()
    core = Core(engine=engine, openings=openings, tokenises=True)
    for number in range(20):
        core.consumer.append(record(f"j{number}"))
    async with core.working():
        await eventually(lambda: len(openings.planning) > 1, timeout_s=TIMEOUT_S, what="some")
        await asyncio.sleep(0)
        engine.go_on.set()
        await core.all_completed()
    assert 1 < openings.most <= 4
