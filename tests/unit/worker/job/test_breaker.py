"""Tests that an engine that writes nonsense fails no job, and bad jobs halt no engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dragoman_worker.errors import EngineDead
from dragoman_worker.job.breaker import Breaker, Nonsense
from dragoman_worker.ports import Generation, GenerationRequest
from support.fakes.core import Core, record
from support.fakes.scripted_engine import ScriptedEngine


class Sample:
    """A sample that is asked by a breaker; `verdict` may be an error to raise."""

    def __init__(self, verdict: str | BaseException | None = None) -> None:
        self.verdict = verdict
        self.asked = 0
        self.held: asyncio.Event | None = None

    async def __call__(self) -> str | None:
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return self.verdict


async def test_the_sample_is_asked_at_the_fiftieth_failure_in_a_row() -> None:
    sample = Sample()
    breaker = Breaker(sample)
    for _ in range(49):
        await breaker.failed()
    breaker.answered()
    for _ in range(49):
        await breaker.failed()
    assert sample.asked == 0
    await breaker.failed()
    assert sample.asked == 1
    for _ in range(49):
        await breaker.failed()
    assert sample.asked == 1, "a right answer starts the count again"


async def test_a_wrong_answer_halts_every_attempt_that_waits_for_it() -> None:
    sample = Sample("with a loop")
    sample.held = asyncio.Event()
    breaker = Breaker(sample)
    waiting = [asyncio.create_task(breaker.confirm()) for _ in range(5)]
    await asyncio.sleep(0)
    sample.held.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(result) for result in results} == {Nonsense}
    assert sample.asked == 1


async def test_an_attempt_that_is_cancelled_leaves_the_others_waiting() -> None:
    sample = Sample()
    sample.held = asyncio.Event()
    breaker = Breaker(sample)
    first, second = [asyncio.create_task(breaker.confirm()) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()
    sample.held.set()
    await second
    assert sample.asked == 1


async def test_an_engine_that_dies_of_the_sample_is_dead_and_not_nonsense() -> None:
    with pytest.raises(EngineDead):
        await Breaker(Sample(EngineDead("gone"))).confirm()


class Turning(ScriptedEngine):
    """Answers empty texts where `nonsense` says so by the number of earlier requests."""

    def __init__(self, nonsense: Callable[[int], bool]) -> None:
        super().__init__()
        self._nonsense = nonsense

    async def generate(self, request: GenerationRequest) -> Generation:
        bad = self._nonsense(len(self.requests))
        made = await super().generate(request)
        return made._replace(text="") if bad else made


async def test_an_engine_that_turns_to_nonsense_after_100_good_answers_fails_no_job() -> None:
    core = Core(engine=Turning(lambda before: before >= 100), ask_sample=Sample("with a loop"))
    for number in range(300):
        core.consumer.append(record(f"j{number}", "one two"))
    with pytest.raises(Nonsense, match="with a loop"):
        async with asyncio.timeout(60):
            await core.build()[2].run()
    found = [core.store.state(f"j{number}") for number in range(300)]
    states = [state for state in found if state is not None]
    statuses = [str(state.status) for state in states]
    assert (statuses.count("failed"), statuses.count("completed")) == (0, 100)
    assert not core.dead_letters.letters
    assert not any(state.claims for state in states), "a halt of the breaker releases its claims"


async def test_a_document_of_bad_items_alone_fails_and_halts_nothing() -> None:
    sample = Sample()
    core = Core(engine=Turning(lambda _: True), ask_sample=sample)
    core.consumer.append(record(text=[f"item {number}" for number in range(512)]))
    await core.run_all()
    assert core.state().status == "failed"
    assert 1 <= sample.asked < 200
