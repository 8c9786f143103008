"""Items become translations or errors, with an engine that follows a script."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.errors import (
    Cancelled,
    EngineDead,
    PermanentEngineError,
    TransientEngineError,
    UnknownGlossary,
    UnknownProfile,
)
from dragoman_worker.flow.permits import Draining, Permits
from dragoman_worker.job.item_results import first_failure, item_results
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.translator import Translator
from dragoman_worker.prompts.base import Profile, PromptInput
from dragoman_worker.prompts.plain import PLAIN, PlainProfile
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.scripted_engine import Says, ScriptedEngine
from support.processes.waiting import eventually


def job(text: Any, **fields: Any) -> TranslationJob:
    return TranslationJob.model_validate(json.loads(record(text=text, **fields)))


def translator(core: Core) -> Translator:
    return core.build()[0]


async def run(core: Core, text: Any, **fields: Any) -> Plan:
    """Plan, admit and run a job, as the executor does."""
    translate = translator(core)
    plan = translate._planner.open(job(text, **fields))
    permit = await translate.acquire(plan)
    try:
        await translate.run(plan, permit)
    finally:
        translate.dismiss(plan, permit)
    return plan


def texts(core: Core, plan: Plan) -> list[str | None]:
    return [item.text for item in item_results(plan)]


# --- unchanged, whitespace, order ---------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "42", "1,000.50", "\U0001f600\U0001f680", "…"])
async def test_what_needs_no_translation_comes_back_unchanged_without_the_engine(text: str) -> None:
    core = Core()
    plan = await run(core, text)
    [item] = item_results(plan)
    assert (item.text, item.error, item.attempts) == (text, None, 0)
    assert core.engine.requests == []
    assert core.permits.held_items == 0


@settings(deadline=None)  # each example starts a loop of its own
@given(before=st.text(" \t\n\u3000"), after=st.text(" \t\n\u3000"))
def test_the_blanks_around_a_text_are_kept(before: str, after: str) -> None:
    async def check() -> None:
        core = Core()
        plan = await run(core, f"{before}one two{after}")
        assert texts(core, plan) == [f"{before}ONE TWO{after}"]
        assert core.engine.requests[0].source == "one two"

    asyncio.run(check())


async def test_items_keep_their_order_and_ids_whichever_is_done_first() -> None:
    core = Core()
    slow = core.engine.hold("one")
    translate = translator(core)
    plan = translate._planner.open(job([{"text": "one", "id": "x"}, "two", "", "three"]))
    task = asyncio.create_task(translate.run(plan))
    await eventually(
        lambda: core.engine.inside == ["one"] and len(core.engine.requests) == 3,
        timeout_s=TIMEOUT_S,
        what="the others done",
    )
    slow.set()
    await task
    items = item_results(plan)
    assert [(item.id, item.text) for item in items] == [
        ("x", "ONE"),
        (None, "TWO"),
        (None, ""),
        (None, "THREE"),
    ]


# --- finish reasons -------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["length", "abort", "error", "repetition"])
async def test_only_stop_is_success(reason: Any) -> None:
    core = Core()
    core.engine.script("one", *[Says("ONE", reason)] * 3)
    plan = await run(core, "one")
    [item] = item_results(plan)
    assert item.text is None
    assert item.error is not None
    assert item.error.code == "engine_failed"
    assert (item.attempts, item.finish_reason) == (3, reason)
    assert core.engine.asked("one") == 3


@pytest.mark.parametrize(
    "last_error",
    [
        Says("ONE", "length"),
        Says("ONE", "abort"),
        Says("ONE", "error"),
        Says("ONE", "repetition"),
        Says("   "),
        TransientEngineError("not now"),
    ],
)
async def test_a_stumble_is_asked_for_again(last_error: Any) -> None:
    core = Core()
    core.engine.script("one", last_error)
    plan = await run(core, "one")
    [item] = item_results(plan)
    assert (item.text, item.error, item.attempts, item.finish_reason) == ("ONE", None, 2, "stop")
    assert [request.attempt for request in core.engine.requests] == [1, 2]


async def test_what_would_fail_again_is_not_asked_for_again() -> None:
    core = Core()
    core.engine.script("one", PermanentEngineError("never"))
    plan = await run(core, ["one", "two"])
    first, second = item_results(plan)
    assert first.error is not None
    assert (first.error.message, first.attempts) == ("never", 1)
    assert second.text == "TWO"
    failure = first_failure(plan)
    assert failure is not None
    assert failure.code is FailureCode.ENGINE_FAILED


async def test_a_cut_off_translation_gets_a_larger_budget() -> None:
    core = Core()
    core.engine.script("one", Says("O", "length"), Says("ON", "length"))
    await run(core, "one")
    budgets = [request.decoding.max_tokens for request in core.engine.requests]
    assert budgets == [budgets[0], 2 * budgets[0], 4 * budgets[0]]


async def test_a_larger_budget_stays_within_the_context_and_the_policy() -> None:
    core = Core(engine=ScriptedEngine(max_model_len=100), max_tokens=90)
    core.engine.script("one", *[Says("O", "length")] * 3)
    failure = first_failure(await run(core, "one"))
    budgets = [request.decoding.max_tokens for request in core.engine.requests]
    assert budgets == [66, 90], "a third attempt could be no longer than the second"
    assert failure is not None
    assert (failure.code, failure.retryable) == (FailureCode.ENGINE_FAILED, False)


async def test_a_text_cut_off_at_the_jobs_own_limit_is_not_retryable() -> None:
    core = Core()
    core.engine.script("one", *[Says("O", "length")] * 3)
    failure = first_failure(await run(core, "one", sampling={"max_tokens": 5}))
    assert [request.decoding.max_tokens for request in core.engine.requests] == [5]
    assert failure is not None
    assert "sampling.max_tokens" in failure.message
    assert not failure.retryable


@pytest.mark.parametrize("last_error", [Says("ONE ONE ONE", "repetition"), Says("")])
async def test_after_a_loop_or_nothing_it_is_asked_otherwise(last_error: Says) -> None:
    core = Core()
    core.engine.script("one", last_error)
    await run(core, "one")
    first, second = (request.decoding for request in core.engine.requests)
    assert first != second
    assert second.temperature > 0
    assert second.frequency_penalty > first.frequency_penalty


async def test_usage_is_summed_over_attempts() -> None:
    core = Core()
    core.engine.script("one two", Says("a b c", "length"), Says("d e"))
    plan = await run(core, "one two")
    usage = item_results(plan)[0].usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (4, 5)
    assert (usage.source_chars, usage.target_chars) == (7, 3)


async def test_retries_are_counted_by_code() -> None:
    core = Core()
    core.engine.script("one", *[TransientEngineError("not now")] * 2)
    await run(core, "one")
    count = core.metrics.registry.get_sample_value
    assert count("dragoman_retries_total", {"code": "engine_failed"}) == 2


async def test_an_attempt_that_takes_too_long_is_aborted_and_asked_for_again() -> None:
    core = Core(attempt_timeout_s=0.01)
    core.engine.hold("one")
    plan = await run(core, "one")
    assert texts(core, plan) == ["ONE"]
    assert core.engine.aborted == ["one"]
    assert core.permits.held_items == 0


# --- permits --------------------------------------------------------------------------------------


async def test_no_more_items_are_in_the_engine_than_permits_allow() -> None:
    core = Core(permits=Permits(items=3, tokens=100_000))
    plan = await run(core, [f"text {chr(97 + number)}" for number in range(20)])
    assert core.engine.most_inside == 3
    assert None not in texts(core, plan)
    assert core.permits.held_items == 0


async def test_a_permit_covers_prompt_and_expected_answer() -> None:
    core = Core()
    released = core.engine.hold("one two three")
    task = asyncio.create_task(run(core, "one two three"))
    await core.inside("one two three")
    [request] = core.engine.requests
    assert 3 + 3 < core.permits.held_tokens < 3 + request.decoding.max_tokens
    released.set()
    await task


async def test_while_it_waits_to_try_again_an_item_holds_no_permit() -> None:
    core = Core(retry=replace(Core().retry, initial_s=3_600, max_s=3_600))
    core.engine.script("one", TransientEngineError("not now"))
    task = asyncio.create_task(run(core, "one"))
    await eventually(
        lambda: core.engine.asked("one") == 1 and not core.engine.inside,
        timeout_s=TIMEOUT_S,
        what="the first attempt failed",
    )
    await eventually(lambda: core.permits.held_items == 0, timeout_s=TIMEOUT_S, what="permit back")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_drain_turns_a_job_away_before_its_first_item() -> None:
    core = Core()
    core.permits.drain()
    with pytest.raises(Draining):
        await run(core, "one")


async def test_the_first_permit_is_given_back_if_nobody_used_it() -> None:
    core = Core()
    translate = translator(core)
    plan = translate._planner.open(job(["one", "two"]))
    permit = await translate.acquire(plan)
    assert core.permits.held_items == 1
    translate.dismiss(plan, permit)
    translate.dismiss(plan, permit)
    assert core.permits.held_items == 0


# --- failures of the process ----------------------------------------------------------------------


@pytest.mark.parametrize("items", [1, 2, 7])
async def test_the_engine_s_death_ends_everything_as_itself(items: int) -> None:
    core = Core()
    sources = [f"text {chr(97 + number)}" for number in range(items)]
    for source in sources:
        core.engine.script(source, EngineDead("gone"))
    with pytest.raises(EngineDead, match="gone"):
        await run(core, sources)


async def test_the_engine_s_death_is_not_hidden_by_a_defect_beside_it() -> None:
    core = Core()
    core.engine.script("one", EngineDead("gone"))
    core.engine.script("two", RuntimeError("defect"))
    with pytest.raises(EngineDead, match="gone"):
        await run(core, ["one", "two", "three"])


async def test_a_cut_keeps_what_was_done_and_says_why_the_rest_is_not() -> None:
    core = Core()
    core.engine.hold("two")
    core.engine.script("three", *[TransientEngineError("not now")] * 3)
    translate = translator(core)
    plan = translate._planner.open(job(["one", "two", ""]))
    task = asyncio.create_task(translate.run(plan))
    await core.inside("two")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    done, cut, blank = item_results(plan, Cancelled("cancelled while it ran"))
    assert (done.text, blank.text, cut.text) == ("ONE", "", None)
    assert cut.error is not None
    assert cut.error.code == "cancelled"
    assert core.engine.aborted == ["two"]


async def test_an_item_cut_between_two_attempts_was_cancelled_not_failed() -> None:
    core = Core(retry=replace(Core().retry, initial_s=3_600, max_s=3_600))
    core.engine.script("one", TransientEngineError("not now"))
    translate = translator(core)
    plan = translate._planner.open(job("one"))
    task = asyncio.create_task(translate.run(plan))
    await eventually(
        lambda: core.engine.asked("one") == 1 and not core.engine.inside,
        timeout_s=TIMEOUT_S,
        what="the first attempt failed",
    )
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    [item] = item_results(plan, Cancelled("cancelled while it ran"))
    assert item.error is not None
    assert item.error.code == "cancelled"
    assert item.attempts == 1


# --- sampling -------------------------------------------------------------------------------------


async def test_a_job_s_sampling_goes_to_the_engine() -> None:
    core = Core()
    asked = {
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 5,
        "seed": 3,
        "max_tokens": 12,
        "repetition_penalty": 1.1,
    }
    await run(core, "one", sampling=asked)
    decoding = core.engine.requests[0].decoding
    assert {name: getattr(decoding, name) for name in asked} == asked


async def test_a_job_s_max_tokens_is_bounded_by_the_policy_and_the_context() -> None:
    core = Core(max_tokens=50)
    await run(core, "one", sampling={"max_tokens": 4_000})
    assert core.engine.requests[0].decoding.max_tokens == 50
    core = Core(engine=ScriptedEngine(max_model_len=40))
    await run(core, "one", sampling={"max_tokens": 4_000})
    assert core.engine.requests[0].decoding.max_tokens == 39


async def test_the_budget_follows_from_the_source_s_length() -> None:
    core = Core()
    await run(core, ["one", "word " * 100])
    short, long = (request.decoding.max_tokens for request in core.engine.requests)
    assert short == 2 * 1 + 64
    assert long == 2 * 100 + 64


# --- what fails the whole job ---------------------------------------------------------------------


async def test_a_stored_glossary_that_is_not_there_fails_the_job() -> None:
    with pytest.raises(UnknownGlossary, match="g1"):
        translator(Core())._planner.open(job("one", glossary_id="g1"))


async def test_a_profile_that_is_not_there_fails_the_job() -> None:
    def choose(wanted: str | None) -> Profile:
        raise UnknownProfile(f"profile: there is no {wanted}")

    with pytest.raises(UnknownProfile, match="p1"):
        translator(Core(choose_profile=choose))._planner.open(job("one", profile="p1"))


# --- long texts -----------------------------------------------------------------------------------

SENTENCE = "This is a sentence of eight words here. "


def in_engine(core: Core) -> list[str]:
    return [request.source for request in core.engine.requests]


async def test_a_text_too_long_for_the_context_is_split_between_sentences() -> None:
    core = Core(engine=ScriptedEngine(max_model_len=60))
    text = SENTENCE * 12
    plan = await run(core, text)
    assert texts(core, plan) == [text.upper()]
    assert len(core.engine.requests) > 1
    assert all(len(source.split()) <= 60 for source in in_engine(core))
    assert all(source.endswith("here.") for source in in_engine(core))


async def test_a_text_of_more_sentences_than_the_profile_does_well_is_split() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_sentences=2)))
    text = SENTENCE * 5
    plan = await run(core, text)
    assert texts(core, plan) == [text.upper()]
    assert [source.count("here.") for source in in_engine(core)] == [2, 2, 1]


async def test_a_word_that_does_not_fit_fails_with_its_counts_and_spares_the_others() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_tokens=1)))
    core.engine = CharacterEngine()
    plan = await run(core, ["ok", "x" * 150])
    fine, long = item_results(plan)
    assert fine.text == "OK"
    assert long.error is not None
    assert (long.text, long.error.code) == (None, "too_long")
    assert "150" in long.error.message
    assert str(core.engine.limits.max_model_len) in long.error.message
    assert in_engine(core) == ["ok"]


class CharacterEngine(ScriptedEngine):
    """A token every three characters."""

    def count_tokens(self, text: str) -> int:
        return len(text) // 3 + 1 if text.strip() else 0


async def test_a_term_that_must_not_be_translated_is_never_split() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_tokens=4)))
    term = "Very Long Brand"
    await run(core, f"a b c {term} d e f", do_not_translate=[term])
    assert any(term in source for source in in_engine(core))


async def test_pieces_that_need_no_translation_do_not_reach_the_engine() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_sentences=1)))
    plan = await run(core, "One two three. 42! Four five six.")
    assert "42!" not in in_engine(core)
    assert texts(core, plan) == ["ONE TWO THREE. 42! FOUR FIVE SIX."]


async def test_a_job_whose_first_piece_needs_no_translation_still_pays_for_the_next() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_sentences=1)))
    released = core.engine.hold("One two three.")
    task = asyncio.create_task(run(core, "42! One two three."))
    await core.inside("One two three.")
    assert core.permits.held_tokens > 3
    released.set()
    await task


async def test_warnings_of_any_piece_are_kept() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_sentences=1)))
    plan = await run(core, "One two three. 42!", context="a letter")
    [item] = item_results(plan)
    assert any("context" in warning for warning in item.warnings)


async def test_one_piece_that_fails_fails_its_item() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_sentences=1)))
    core.engine.script("Four five six.", PermanentEngineError("never"))
    plan = await run(core, "One two three. Four five six.")
    [item] = item_results(plan)
    assert item.text is None
    assert item.error is not None
    assert item.usage.prompt_tokens == 3


async def test_an_answer_that_is_cut_off_again_and_again_is_asked_for_in_halves() -> None:
    core = Core()
    text = SENTENCE * 4
    core.engine.script(text.strip(), *[Says("THIS", "length")] * 3)
    plan = await run(core, text)
    [item] = item_results(plan)
    assert (item.text, item.error) == (text.upper(), None)
    assert in_engine(core)[3:] == [(SENTENCE * 2).strip()] * 2
    assert item.usage.prompt_tokens == 3 * 32 + 32
    assert core.permits.held_items == 0


async def test_a_long_answer_at_default_limits_is_split_instead_of_cut_off() -> None:
    core = Core(engine=ScriptedEngine(max_model_len=32_000))
    text = SENTENCE * 1_000
    plan = await run(core, text)
    [item] = item_results(plan)
    assert item.text == text.upper()
    assert all(request.decoding.max_tokens <= 4_096 for request in core.engine.requests)
    assert all(1.2 * len(source.split()) <= 4_096 for source in in_engine(core))


async def test_a_half_that_fails_fails_the_item() -> None:
    core = Core()
    text = SENTENCE * 2
    core.engine.script(text.strip(), *[Says("THIS", "length")] * 3)
    core.engine.script(SENTENCE.strip(), PermanentEngineError("never"))
    [item] = item_results(await run(core, text))
    assert item.error is not None
    assert (item.text, item.error.message) == (None, "never")


async def test_pieces_are_joined_with_the_blanks_of_the_target_language() -> None:
    core = Core(choose_profile=lambda _: cast("Profile", PlainProfile(max_source_sentences=1)))
    core.engine.script("これは文です。", Says("Sentence 1."))
    core.engine.script("次の文。", Says("This."))
    plan = await run(core, "これは文です。次の文。", source_lang="ja", target_lang="en")
    assert texts(core, plan) == ["Sentence 1. This."]


# --- what a profile is given ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recording(PlainProfile):
    """Remembers what it was asked to render."""

    seen: Callable[[PromptInput], None] = lambda _: None

    def render(self, segment: PromptInput) -> Any:
        self.seen(segment)
        return PLAIN.render(segment)


async def test_a_profile_is_given_all_that_steers_the_item() -> None:
    seen: list[PromptInput] = []
    core = Core(choose_profile=lambda _: cast("Profile", Recording(seen=seen.append)))
    await run(
        core,
        [{"text": " one ", "context": "of the item", "protect": ["X1"]}],
        context="of the job",
        glossary={"one": "eins"},
        do_not_translate=["Y2"],
        formality="more",
        instructions=["be brief"],
    )
    assert seen[0] == PromptInput(
        text="one",
        target_lang="de",
        source_lang="en",
        context="of the job\nof the item",
        glossary={"one": "eins"},
        do_not_translate=("Y2",),
        formality="more",
        instructions=("be brief",),
        protect=("X1",),
    )


async def test_every_request_of_a_job_carries_what_the_engine_needs_to_know() -> None:
    core = Core()
    await run(core, ["one", "two"], target_lang="zh_CN")
    assert {request.target_lang for request in core.engine.requests} == {"zh-CN"}
    assert {request.request_id for request in core.engine.requests} == {"a1"}
    pairs = itertools.pairwise(sorted(in_engine(core)))
    assert list(pairs) == [("one", "two")]
