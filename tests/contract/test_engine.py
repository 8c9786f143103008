"""The engine contract: what the worker relies on with every engine."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from dragoman_worker.errors import EngineDead, TooLong
from dragoman_worker.ports import (
    Decoding,
    Engine,
    FinishReason,
    Generation,
    GenerationRequest,
    Prompt,
)
from support.builders.engine_requests import (
    MAX_NUM_SEQS,
    a_long_request,
    a_request,
    begin,
    begin_long,
    ended,
)
from support.builders.tiny_model import CONTEXT_TOKENS
from support.processes.waiting import eventually

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("default"),  # vLLM's and its libraries' are not ours to mend
]


@pytest.fixture(
    params=[
        "echo",
        *(pytest.param(kind, marks=pytest.mark.vllm) for kind in ("vllm", "openai")),
        pytest.param("llama", marks=pytest.mark.llama_cpp),
    ]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.getfixturevalue(f"{request.param}_engine")
    return made


async def test_it_reports_its_name_model_and_limits(engine: Engine) -> None:
    assert engine.info.name in ("echo", "vllm", "openai")
    assert engine.info.version
    assert engine.model
    assert engine.limits.max_num_seqs == MAX_NUM_SEQS
    assert engine.limits.max_model_len == CONTEXT_TOKENS
    assert engine.limits.max_num_batched_tokens == 512
    assert engine.limits.kv_cache_tokens >= CONTEXT_TOKENS


async def test_longer_texts_have_more_tokens(engine: Engine) -> None:
    assert engine.count_tokens("") == 0
    short, long = engine.count_tokens("Hello."), engine.count_tokens("Hello, how are you today?")
    assert 0 < short < long


async def test_a_generation_reports_its_finish_reason_and_tokens(engine: Engine) -> None:
    asked = a_request(engine, decoding=Decoding(max_tokens=20))
    made = await engine.generate(asked)
    assert made.finish_reason in get_args(FinishReason)
    assert made.prompt_tokens == len(asked.prompt_ids)
    assert 0 < made.completion_tokens <= 20


async def test_greedy_decoding_gives_the_same_text_twice(engine: Engine) -> None:
    first, second = [await engine.generate(a_request(engine)) for _ in range(2)]
    assert first.text == second.text


async def test_an_exact_length_is_met_and_reported_as_a_complete_answer(engine: Engine) -> None:
    made = await engine.generate(a_request(engine, decoding=Decoding(max_tokens=33)))
    assert (made.completion_tokens, made.finish_reason) == (33, "stop")
    assert made.text.strip()


async def test_a_prompt_as_long_as_the_context_is_too_long_and_the_next_is_unharmed(
    engine: Engine,
) -> None:
    ids = list(engine.encode(Prompt(completion="a b " * 2 * CONTEXT_TOKENS)))[:CONTEXT_TOKENS]
    overlong = GenerationRequest("long", ids, Decoding(max_tokens=8), "a", "de", 1)
    with pytest.raises(TooLong, match=str(CONTEXT_TOKENS)):
        await engine.generate(overlong)
    assert (await engine.generate(a_request(engine))).completion_tokens == 8


async def test_two_requests_may_bear_the_same_id(engine: Engine) -> None:
    both = await asyncio.gather(*(engine.generate(a_request(engine)) for _ in range(2)))
    assert both[0].text == both[1].text


async def test_it_runs_max_num_seqs_at_once_and_lets_the_others_wait(engine: Engine) -> None:
    tasks = list(begin(engine, *(a_long_request(engine) for _ in range(MAX_NUM_SEQS + 3))))
    usage = 0.0

    def full() -> bool:
        nonlocal usage
        for place, task in enumerate(tasks):
            if task.done():  # vLLM's gauges are read at intervals: keep it full until then
                (tasks[place],) = begin(engine, a_long_request(engine))
        now = engine.stats()
        assert now.running <= MAX_NUM_SEQS
        known = now.kv_cache_usage  # of a server: as it was within a second; llama.cpp has none
        usage = max(usage, 1.0 if known is None else known)
        return now.running == MAX_NUM_SEQS and now.waiting == 3 and usage > 0

    await eventually(full, timeout_s=60, what="as many running as it admits", longest_pause_s=0.02)
    for task in tasks:
        task.cancel()
    await ended(tasks)
    idle = engine.stats()
    assert (idle.running, idle.waiting, idle.kv_cache_usage or 0.0) == (0, 0, 0.0)


async def test_requests_beyond_its_capacity_all_get_their_turn(engine: Engine) -> None:
    results = await ended(begin(engine, *(a_request(engine) for _ in range(3 * MAX_NUM_SEQS))))
    assert [written(result) for result in results] == [8] * 3 * MAX_NUM_SEQS
    assert engine.stats().waiting == 0


async def test_cancelling_frees_the_slots_for_those_who_wait(engine: Engine) -> None:
    first = await begin_long(engine, MAX_NUM_SEQS)
    (waiting,) = begin(engine, a_request(engine))
    for task in first:
        task.cancel()
    results = await ended([*first, waiting])
    assert all(isinstance(result, asyncio.CancelledError) for result in results[:-1])
    assert written(results[-1]) == 8
    assert engine.stats().running == 0


async def test_requests_cancelled_as_they_enter_leave_nothing_behind(engine: Engine) -> None:
    for ticks in range(6):
        tasks = begin(engine, *(a_long_request(engine) for _ in range(MAX_NUM_SEQS)))
        for _ in range(ticks):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await ended(tasks)
    results = await ended(begin(engine, *(a_request(engine) for _ in range(MAX_NUM_SEQS))))
    assert [written(result) for result in results] == [8] * MAX_NUM_SEQS
    assert engine.stats().running == 0


async def test_no_death_is_reported_that_did_not_happen(engine: Engine) -> None:
    deaths: list[EngineDead] = []
    engine.on_death(deaths.append)
    await engine.generate(a_request(engine))
    assert not deaths


async def test_a_request_that_takes_long_gives_signs_of_life(engine: Engine) -> None:
    [task] = await begin_long(engine, 1)
    before = engine.signs_of_life()
    await eventually(
        lambda: engine.signs_of_life() > before + 1, timeout_s=30, what="two signs of life"
    )
    task.cancel()
    await ended([task])


def written(result: Generation | BaseException) -> int:
    """Return the number of generated tokens; raises the error of a failed request."""
    if isinstance(result, BaseException):
        raise result
    return result.completion_tokens
