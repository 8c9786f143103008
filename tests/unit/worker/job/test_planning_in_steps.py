"""Requests are planned as they may enter, within the job's budget, however many items it has."""

from __future__ import annotations

import pytest

from dragoman_worker.flow.permits import Permits
from support.fakes.core import TIMEOUT_S, Core, record
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
            {"text": ["one two"] * 500, "glossary": {f"term number {n}": "x" for n in range(200)}},
            "glossary",
        ),
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
