"""Tests of attempts that time out while the engine gives no sign of life."""

from __future__ import annotations

from dragoman_worker.job.outcome import Completed
from dragoman_worker.ports import Capacity
from support.fakes.core import Core, record


async def attempts(core: Core) -> int:
    """Return the attempts of a job whose first request is never answered."""
    core.engine.hold("one two")
    core.consumer.append(record())
    [delivery] = await core.consumer.poll(Capacity(1))
    outcome, _ = await core.build()[1].execute(delivery)
    assert isinstance(outcome, Completed)
    return outcome.result.translations[0].attempts


async def test_a_time_out_in_a_silent_engine_consumes_no_attempt() -> None:
    core = Core(attempt_timeout_s=0.02)
    core.engine.silent = True
    assert await attempts(core) == 1
    assert core.engine.asked("one two") == 2


async def test_a_time_out_in_an_engine_that_works_consumes_one() -> None:
    assert await attempts(Core(attempt_timeout_s=0.02)) == 2
