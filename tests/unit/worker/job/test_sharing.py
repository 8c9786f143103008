"""Equal units in flight: each waits for a permit of its own, and is generated once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from dragoman_text.verdicts import Candidate, Finding
from dragoman_worker.errors import PermanentEngineError, TransientEngineError
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.assessments import QualityRules
from dragoman_worker.ports import Remembered
from dragoman_worker.prompts.names import english_name
from support.fakes.core import Core, record
from support.fakes.local_memory import LocalMemory
from support.fakes.scripted_engine import Says
from support.fakes.scripted_judge import ScriptedJudge, judging
from support.processes.waiting import eventually

english_name("de")  # loads tables, which may take seconds, outside of all waits
RULES = QualityRules("basic", max_attempts=2, on_fail="best_effort")


def remembering(judge: ScriptedJudge | None = None, *, permits: int = 1) -> Core:
    core = Core(judge=judge or ScriptedJudge(), rules=RULES)
    core.permits = Permits(items=permits, tokens=100_000)
    core.memory = LocalMemory(core.metrics)
    return core


def order(core: Core) -> list[str]:
    """Return the texts in the order in which they entered the engine."""
    return [request.source for request in core.engine.requests]


async def waiting(core: Core, count: int) -> None:
    """Wait until this number of units wait for a permit."""
    await eventually(
        lambda: core.permits.waiting == count, timeout_s=30, what=f"{count} units that wait"
    )


async def test_a_small_job_does_not_wait_for_a_large_one_that_has_its_text() -> None:
    core = remembering()
    release = core.engine.hold("first")
    async with core.working():
        core.consumer.append(record("j0", ["first", *(f"text {n}" for n in range(20)), "same"]))
        await core.inside("first")
        await waiting(core, 21)
        core.consumer.append(record("j1", "same"))
        await waiting(core, 22)
        release.set()
        await core.all_completed()
    assert order(core).index("same") <= 2
    assert core.engine.asked("same") == 1
    assert [core.state(f"j{number}").status for number in (0, 1)] == ["completed", "completed"]


async def test_the_text_of_a_crowd_is_generated_once_with_one_permit() -> None:
    core = remembering()
    release = core.engine.hold("same")
    async with core.working():
        for number in range(200):
            core.consumer.append(record(f"j{number}", "same"))
        await core.inside("same")
        await waiting(core, 63)  # as many as may be in flight
        release.set()
        await core.all_completed()
    assert core.engine.asked("same") == 1
    assert all(core.texts(f"j{number}") == ["SAME"] for number in range(200))
    assert core.permits.held_items == 0


async def test_a_unit_that_was_looked_up_before_the_answer_takes_it_with_its_permit() -> None:
    core = remembering(permits=2)
    releases = {text: core.engine.hold(text) for text in ("same", "other")}
    async with core.working():
        core.consumer.append(record("j0", "same"))
        core.consumer.append(record("j1", "other"))
        await core.inside("same", "other")
        core.consumer.append(record("j2", "more"))
        core.consumer.append(record("j3", "same"))
        await waiting(core, 2)
        releases["same"].set()
        releases["other"].set()
        await core.all_completed()
    result = core.state("j3").result
    assert result is not None
    assert result.translations[0].cached
    assert core.engine.asked("same") == 1


class Forgetful(LocalMemory):
    """A memory whose writes are never found."""

    def remember(self, key: bytes, translation: Remembered) -> None:
        pass


async def test_equal_units_of_a_crowd_need_no_memory_that_has_the_answer() -> None:
    core = remembering(permits=8)
    core.memory = Forgetful(core.metrics)
    release = core.engine.hold("same")
    async with core.working():
        for number in range(30):
            core.consumer.append(record(f"j{number}", ["same", "same"]))
        await core.inside("same")
        release.set()
        await core.all_completed()
    assert core.engine.asked("same") == 1


async def test_followers_hold_neither_permits_nor_planned_tokens() -> None:
    core = remembering(permits=2)
    core.max_planned_tokens = 2
    release = core.engine.hold("same")
    async with core.working():
        for number in range(20):
            core.consumer.append(record(f"j{number}", "same"))
        await core.inside("same")
        core.consumer.append(record("j20", "other"))
        await eventually(lambda: core.engine.asked("other") == 1, timeout_s=30, what="other")
        release.set()
        await core.all_completed()
    assert core.engine.asked("same") == 1


async def test_a_unit_whose_answers_all_fail_is_generated_for_each_job() -> None:
    def rule(candidate: Candidate) -> Sequence[Finding]:
        return [Finding("length", "fail", "why")]

    core = remembering(judging(rule), permits=4)
    async with core.working():
        for number in range(10):
            core.consumer.append(record(f"j{number}", "same"))
        await core.all_completed()
    assert core.engine.asked("same") == 20  # two attempts each
    assert core.permits.held_items == 0


@pytest.mark.parametrize("jobs", [1, 3])
async def test_jobs_that_ask_for_new_answers_share_only_their_own(jobs: int) -> None:
    core = remembering(permits=8)
    release = asyncio.Event()
    core.engine.script("same", *[release] * jobs)
    async with core.working():
        for number in range(jobs):
            core.consumer.append(record(f"j{number}", ["same"] * 5, memory="refresh"))
        await core.inside(*["same"] * jobs)
        release.set()
        await core.all_completed()
    assert core.engine.asked("same") == jobs


async def test_a_job_that_asks_for_a_new_answer_does_not_take_one_just_given() -> None:
    core = remembering()
    core.engine.script("same", Says("OLD"), Says("NEW"))
    async with core.working():
        for number, memory in enumerate(("use", "refresh", "use")):
            core.consumer.append(record(f"j{number}", "same", memory=memory))
            await core.all_completed()
    assert [core.texts(f"j{number}") for number in range(3)] == [["OLD"], ["NEW"], ["NEW"]]


async def test_a_job_in_quarantine_does_not_wait_for_a_leader_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = remembering(permits=2)
    monkeypatch.setattr(core.permits, "in_quarantine", lambda job: job == "suspect")
    core.engine.script("same", asyncio.Event())  # never answers the first
    core.attempt_timeout_s = 1_000
    async with core.working():
        core.consumer.append(record("leader", "same"))
        await core.inside("same")
        core.consumer.append(record("suspect", "same"))
        await eventually(
            lambda: (
                core.store.state("suspect") is not None
                and core.state("suspect").status == "completed"
            ),
            timeout_s=30,
            what="the suspect",
        )
        core.store.cancel("leader")
        await core.all_completed()
    assert core.engine.asked("same") == 2


async def test_a_unit_that_is_tried_again_comes_before_the_others_of_its_job() -> None:
    core = remembering()
    core.engine.script("a", TransientEngineError("once"))
    release = core.engine.hold("b")
    async with core.working():
        core.consumer.append(record("j0", ["a", "b", "c", "d", "e"]))
        await core.inside("b")
        await waiting(core, 4)
        release.set()
        await core.all_completed()
    assert order(core) == ["a", "b", "a", "c", "d", "e"]


async def test_jobs_whose_look_ups_end_together_keep_the_bound_on_planned_tokens() -> None:
    judge = ScriptedJudge(open=asyncio.Event())
    core = remembering(judge)
    core.max_planned_tokens = 1
    release = core.engine.hold("first")
    async with core.working():
        core.consumer.append(record("j0", "first", quality={"level": "off"}))
        await core.inside("first")
        for number in range(1, 21):
            core.consumer.append(record(f"j{number}", f"text {number}", source_lang=...))
        await eventually(lambda: len(judge.asked) == 20, timeout_s=30, what="all look-ups")
        assert judge.open is not None
        judge.open.set()
        await waiting(core, 1)
        for _ in range(100):
            await asyncio.sleep(0)
        assert core.permits.waiting == 1
        release.set()
        await core.all_completed()


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_happens_to_equal_units_all_jobs_end_and_nothing_is_held(seed: int) -> None:
    chance = random.Random(seed)
    texts = ["one", "two", "three"]

    def rule(candidate: Candidate) -> Sequence[Finding]:
        return [Finding("length", "fail", "why")] if candidate.target == "BAD" else []

    core = remembering(judging(rule), permits=2)
    core.max_planned_tokens = 20
    for text in texts:
        steps: list[Says | BaseException] = [
            PermanentEngineError("no"),
            TransientEngineError("once"),
            Says("BAD"),
        ]
        core.engine.script(text, *chance.choices(steps, k=12))
    ids = [f"j{number}" for number in range(40)]
    async with core.working():
        for job_id in ids:
            items = chance.choices(texts, k=chance.randint(1, 6))
            memory = chance.choice(["use", "use", "refresh", "off"])
            core.consumer.append(record(job_id, items, memory=memory))
        for job_id in chance.sample(ids, k=10):
            await asyncio.sleep(0)
            core.store.cancel(job_id)
        await core.all_completed()
    assert all(core.store.state(job_id) is not None for job_id in ids)
    assert all(core.state(job_id).result is not None for job_id in ids)
    assert (core.permits.held_items, core.permits.waiting) == (0, 0)
