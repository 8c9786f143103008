"""What does the worker rely on, whichever engine it has?"""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from dragoman_worker.errors import EngineDead, TooLong
from dragoman_worker.ports import Decoding, Engine, FinishReason, GenerationRequest, Prompt
from support.engine_requests import CONTEXT_TOKENS, MAX_NUM_SEQS, a_request, ended, long_decoding
from support.waiting import eventually

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("default"),  # vLLM's and its libraries' are not ours to mend
    pytest.mark.timeout(300),
]


@pytest.fixture(params=["echo", pytest.param("vllm", marks=pytest.mark.vllm)])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.getfixturevalue(f"{request.param}_engine")
    return made


async def test_it_tells_who_it_is_and_what_it_was_built_with(engine: Engine) -> None:
    assert engine.info.name in ("echo", "vllm")
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


async def test_a_generation_says_how_it_ended_and_what_it_took(engine: Engine) -> None:
    asked = a_request(engine, decoding=Decoding(max_tokens=20))
    made = await engine.generate(asked)
    assert made.finish_reason in get_args(FinishReason)
    assert made.prompt_tokens == len(asked.prompt_ids)
    assert 0 < made.completion_tokens <= 20


async def test_greedy_decoding_gives_the_same_text_twice(engine: Engine) -> None:
    first, second = [await engine.generate(a_request(engine)) for _ in range(2)]
    assert first.text == second.text


async def test_an_exact_length_is_met_and_reported_as_length(engine: Engine) -> None:
    made = await engine.generate(
        a_request(engine, decoding=Decoding(max_tokens=33, exact_length=True))
    )
    assert (made.completion_tokens, made.finish_reason) == (33, "length")


async def test_a_prompt_as_long_as_the_context_is_too_long_and_the_next_is_unharmed(
    engine: Engine,
) -> None:
    ids = list(engine.encode(Prompt(completion="a " * 4 * CONTEXT_TOKENS)))[:CONTEXT_TOKENS]
    overlong = GenerationRequest("long", ids, Decoding(max_tokens=8), "a", "de", 1)
    with pytest.raises(TooLong, match=str(CONTEXT_TOKENS)):
        await engine.generate(overlong)
    assert (await engine.generate(a_request(engine))).completion_tokens == 8


async def test_two_requests_may_bear_the_same_id(engine: Engine) -> None:
    both = await asyncio.gather(*(engine.generate(a_request(engine)) for _ in range(2)))
    assert both[0].text == both[1].text


async def test_it_runs_max_num_seqs_at_once_and_lets_the_others_wait(engine: Engine) -> None:
    tasks = [
        asyncio.create_task(engine.generate(a_request(engine, decoding=long_decoding())))
        for _ in range(MAX_NUM_SEQS + 3)
    ]

    def full() -> bool:
        now = engine.readings()
        assert now.running <= MAX_NUM_SEQS
        return now.running == MAX_NUM_SEQS and now.waiting == 3 and now.kv_cache_usage > 0

    await eventually(full, timeout_s=30, what="as many running as it admits")
    results = await ended(tasks)
    assert [getattr(made, "completion_tokens", made) for made in results] == [480] * len(tasks)
    idle = engine.readings()
    assert (idle.running, idle.waiting, idle.kv_cache_usage) == (0, 0, 0.0)


async def test_cancelling_frees_the_slots_for_those_who_wait(engine: Engine) -> None:
    first = [
        asyncio.create_task(engine.generate(a_request(engine, decoding=long_decoding())))
        for _ in range(MAX_NUM_SEQS)
    ]
    await eventually(
        lambda: engine.readings().running == MAX_NUM_SEQS, timeout_s=30, what="a full engine"
    )
    waiting = asyncio.create_task(engine.generate(a_request(engine)))
    for task in first:
        task.cancel()
    results = await ended([*first, waiting])
    assert all(isinstance(result, asyncio.CancelledError) for result in results[:-1])
    assert getattr(results[-1], "completion_tokens", results[-1]) == 8
    assert engine.readings().running == 0


async def test_requests_cancelled_as_they_enter_leave_nothing_behind(engine: Engine) -> None:
    for ticks in range(6):
        tasks = [
            asyncio.create_task(engine.generate(a_request(engine, decoding=long_decoding())))
            for _ in range(MAX_NUM_SEQS)
        ]
        for _ in range(ticks):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await ended(tasks)
    begin = asyncio.get_running_loop().time()
    fill = [asyncio.create_task(engine.generate(a_request(engine))) for _ in range(MAX_NUM_SEQS)]
    results = await ended(fill)
    assert [getattr(made, "completion_tokens", made) for made in results] == [8] * MAX_NUM_SEQS
    assert asyncio.get_running_loop().time() - begin < 20


async def test_nobody_is_told_of_a_death_that_did_not_happen(engine: Engine) -> None:
    deaths: list[EngineDead] = []
    engine.on_death(deaths.append)
    await engine.generate(a_request(engine))
    assert not deaths
