"""Tests of the detection of source languages before planning, with a scripted judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dragoman_schemas.results import ItemResult
from dragoman_text.detection import Detection
from dragoman_worker.prompts.plain import PlainProfile
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.scripted_judge import ScriptedJudge
from support.processes.waiting import eventually


async def results(core: Core, *values: bytes) -> Sequence[ItemResult]:
    for value in values:
        core.consumer.append(value)
    await core.run_all()
    result = core.state().result
    assert result is not None
    return result.translations


async def test_the_languages_of_a_job_are_detected_at_once() -> None:
    judge = ScriptedJudge(languages=lambda text: Detection("fr" if "é" in text else "en", 0.9))
    found = await results(Core(judge=judge), record(text=["one", "été"], source_lang=...))
    assert judge.asked == [(["one", "été"], None, "de")]
    assert [item.detected_source_lang for item in found] == ["en", "fr"]


async def test_a_given_source_is_not_detected() -> None:
    judge = ScriptedJudge()
    [found] = await results(Core(judge=judge), record(source_lang="fr"))
    assert not judge.asked
    assert found.detected_source_lang is None


async def test_the_languages_of_the_profile_are_the_candidates() -> None:
    judge = ScriptedJudge()
    profile = PlainProfile(languages=frozenset(("en", "de")))
    await results(Core(judge=judge, choose_profile=lambda _: profile), record(source_lang=...))
    assert judge.asked[0][1] == {"en", "de"}


@pytest.mark.parametrize("needs_source", [True, False])
async def test_a_job_is_translated_without_a_judge(needs_source: bool) -> None:
    profile = PlainProfile(needs_source=needs_source)
    core = Core(judge=ScriptedJudge(available=False), choose_profile=lambda _: profile)
    [found] = await results(core, record(source_lang=...))
    assert core.state().status == "completed"
    assert found.detected_source_lang is None


async def test_a_guess_is_not_reported() -> None:
    judge = ScriptedJudge(languages=lambda _: Detection("nl", 0.3))
    [found] = await results(Core(judge=judge), record(source_lang=...))
    assert found.detected_source_lang is None


async def test_jobs_that_wait_for_the_judge_hold_no_other_job_up() -> None:
    judge = ScriptedJudge(open=asyncio.Event())
    core = Core(judge=judge, max_in_flight_jobs=200)
    for number in range(100):
        core.consumer.append(record(f"w{number}", source_lang=...))
    core.consumer.append(record("given"))
    async with core.working():
        await eventually(
            lambda: (
                (state := core.store.state("given")) is not None and state.status == "completed"
            ),
            timeout_s=TIMEOUT_S,
            what="the job that needs no detection",
        )
        assert judge.open is not None
        judge.open.set()
        await core.all_completed()
    assert {core.state(f"w{number}").status for number in range(100)} == {"completed"}


async def test_a_drain_does_not_wait_for_the_judge() -> None:
    judge = ScriptedJudge(open=asyncio.Event())
    core = Core(judge=judge, grace_s=0.0)
    core.consumer.append(record(source_lang=...))
    async with core.working():
        await eventually(
            lambda: bool(judge.asked),
            timeout_s=TIMEOUT_S,
            what="the question",
        )
