"""Jobs plan in order while there is capacity; a running job with no waiting request always may."""

from __future__ import annotations

import asyncio

from dragoman_worker.flow.planned_tokens import PlannedTokens


async def test_jobs_wait_for_capacity_and_plan_first_come_first_served() -> None:
    planned = PlannedTokens(10)
    planned.enter("a", 10)
    waiting = [asyncio.create_task(planned.wait_for_capacity(name)) for name in ("b", "c")]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    planned.leave("a", 10)
    await waiting[0]
    assert not waiting[1].done()
    planned.enter("b", 10)
    planned.forget("b")
    await waiting[1]
    assert planned.held == 0


async def test_a_running_job_with_no_waiting_request_plans_whatever_others_hold() -> None:
    planned = PlannedTokens(10)
    planned.enter("a", 100)
    await asyncio.wait_for(planned.wait_for_capacity("b", runs=True), 5)
    planned.enter("b", 1)
    second = asyncio.create_task(planned.wait_for_capacity("b", runs=True))
    await asyncio.sleep(0)
    assert not second.done()
    planned.leave("b", 1)
    await asyncio.wait_for(second, 5)


async def test_a_job_cancelled_as_it_is_admitted_lets_the_next_one_plan() -> None:
    planned = PlannedTokens(10)
    planned.enter("a", 10)
    first, second = (asyncio.create_task(planned.wait_for_capacity(name)) for name in ("b", "c"))
    await asyncio.sleep(0)
    planned.leave("a", 10)
    first.cancel()
    await asyncio.wait_for(second, 5)
