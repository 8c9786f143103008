"""When two workers race for one job, the first terminal state wins."""

from __future__ import annotations

from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.scripted_engine import Says
from support.processes.waiting import eventually


async def test_who_comes_second_tells_the_result_that_stands_and_not_its_own() -> None:
    slow = Core(worker_id="slow")
    fast = Core(worker_id="fast", store=slow.store)
    fast.engine.script("one two", Says("DIFFERENT"))
    released = slow.engine.hold("one two")
    for core in (slow, fast):
        core.consumer.append(record())
    async with slow.working():
        await slow.inside("one two")
        await fast.run_all()
        released.set()
        await eventually(lambda: slow.results.results, timeout_s=TIMEOUT_S, what="it is published")
        await slow.all_completed()
    assert slow.texts() == ["DIFFERENT"]
    assert slow.state().result in fast.results.results
    assert slow.results.results == fast.results.results
