"""Jobs plan in turn while there is room, and a running job with nothing waiting always plans."""

from __future__ import annotations

import asyncio

from dragoman_worker.flow.planned_tokens import PlannedTokens


async def test_a_job_waits_for_room_and_the_first_come_plans_first() -> None:
    planned = PlannedTokens(10)
    planned.enter("a", 10)
    waiting = [asyncio.create_task(planned.capacity(name)) for name in ("b", "c")]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    planned.leave("a", 10)
    await waiting[0]
    assert not waiting[1].done()
    planned.enter("b", 10)
    planned.forget("b")
    await waiting[1]
    assert planned.held == 0


async def test_a_running_job_with_nothing_waiting_plans_whatever_others_hold() -> None:
    planned = PlannedTokens(10)
    planned.enter("a", 100)
    await asyncio.wait_for(planned.capacity("b", runs=True), 5)
    planned.enter("b", 1)
    second = asyncio.create_task(planned.capacity("b", runs=True))
    await asyncio.sleep(0)
    assert not second.done()
    planned.leave("b", 1)
    await asyncio.wait_for(second, 5)


async def test_who_is_cancelled_hands_the_turn_on() -> None:
    planned = PlannedTokens(10)
    planned.enter("a", 10)
    first, second = (asyncio.create_task(planned.capacity(name)) for name in ("b", "c"))
    await asyncio.sleep(0)
    planned.leave("a", 10)
    first.cancel()
    await asyncio.wait_for(second, 5)
