"""The engine against a server that misbehaves: whose trouble each failure is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from dragoman_worker.errors import (
    EngineDead,
    Halt,
    PermanentEngineError,
    TooLong,
    TransientEngineError,
    Unavailable,
    Unreachable,
)
from dragoman_worker.ports import Prompt
from support.builders.openai_engines import back, replies, request, started
from support.processes.waiting import eventually
from support.services.openai_server import OpenAIServer, answer, drop, error


async def test_an_answer_comes_with_its_finish_reason_and_tokens() -> None:
    async with OpenAIServer() as server, started(server) as made:
        given = await made.generate(request(made))
    assert (given.text, given.finish_reason) == ("Hallo.", "stop")
    assert (given.prompt_tokens, given.completion_tokens) == (3, 2)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("length", "length"),
        ("content_filter", "error"),
        (None, "error"),
        ("tool_calls", "error"),
        ("abort", "abort"),
        ("repetition", "repetition"),
    ],
)
async def test_only_stop_is_a_success(reason: str | None, finish: str) -> None:
    handler = replies(lambda: web.json_response(answer("half", finish=reason)))
    async with OpenAIServer(handler) as server, started(server) as made:
        assert (await made.generate(request(made))).finish_reason == finish


@pytest.mark.parametrize(
    "reply",
    [
        lambda: web.Response(text="<html>", content_type="application/json"),
        lambda: web.json_response({"error": {"message": "no"}}),
        lambda: web.json_response({**answer(), "choices": []}),
        lambda: web.json_response(answer(model="gpt-5")),
        lambda: web.json_response([1]),
        lambda: web.json_response({**answer(), "choices": [{"finish_reason": "stop"}]}),
        lambda: error(500, "TEXT"),
        lambda: error(501, "TEXT"),
    ],
    ids=["html", "error in 200", "no choice", "other model", "list", "no text", "500", "501"],
)
async def test_a_wrong_reply_of_a_server_that_answers_others_is_the_jobs_and_quotes_nothing(
    reply: Callable[[], web.Response],
) -> None:
    async with OpenAIServer(replies(reply)) as server, started(server) as made:
        with pytest.raises(TransientEngineError) as caught:
            await made.generate(request(made))
        assert "TEXT" not in str(caught.value)
        assert (await made.generate(request(made))).text == "done"


async def test_half_a_body_is_the_jobs_while_the_server_answers_others() -> None:
    async def half(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "1000"})
        await reply.prepare(request)
        await reply.write(json.dumps(answer()).encode()[:20])
        return await drop(request)

    async with OpenAIServer(half) as server, started(server) as made:
        with pytest.raises(TransientEngineError, match="broke off"):
            await made.generate(request(made))


async def test_a_server_that_answers_nobody_is_an_outage_until_it_answers_again() -> None:
    handler = replies(*[lambda: error(500, "no")] * 9)
    async with OpenAIServer(handler) as server, started(server) as made:
        server.well = False
        with pytest.raises(Unavailable):
            await made.generate(request(made))
        assert made.stats().running == 0
        server.well, server.on_text = True, None
        await back(made)
        assert (await made.generate(request(made))).text == "Hallo."


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_proxy_whose_server_restarts_fails_no_job(status: int) -> None:
    handler = replies(*[lambda: error(status, "restarting")] * 3)
    async with OpenAIServer(handler) as server, started(server) as made:
        assert (await made.generate(request(made))).text == "done"


async def test_a_killed_server_is_an_outage_and_nothing_fails() -> None:
    hangs = asyncio.Event()

    async def hang(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        hangs.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with OpenAIServer(hang) as server, started(server) as made:
        asked = asyncio.create_task(made.generate(request(made)))
        await hangs.wait()
        await server.stop()
        with pytest.raises(Unavailable, match="connect"):
            await asked
        with pytest.raises(Unavailable):
            await made.generate(request(made))
        server.on_text = None
        await server.start()
        await back(made)
        assert (await made.generate(request(made))).text == "Hallo."


async def test_a_request_that_always_breaks_the_connection_fails_after_a_while() -> None:
    async def breaks(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        return await drop(request)

    async with OpenAIServer(breaks) as server, started(server) as made:
        with pytest.raises(TransientEngineError, match="8 times at this request"):
            await made.generate(request(made))
        assert not server.open


async def test_a_cancelled_request_is_closed_at_the_server() -> None:
    async def hang(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with OpenAIServer(hang) as server, started(server) as made:
        asked = asyncio.create_task(made.generate(request(made)))
        await eventually(lambda: server.open == 1, timeout_s=20, what="the request is there")
        asked.cancel()
        await eventually(
            lambda: server.closed == 1 and not server.open, timeout_s=20, what="closed"
        )
        assert made.stats().running == made.stats().waiting == 0


async def test_a_refused_request_is_the_jobs_unless_the_sample_is_refused_too() -> None:
    handler = replies(lambda: error(400, "bad TEXT"), lambda: error(400, "bad TEXT"))
    async with OpenAIServer(handler) as server, started(server) as made:
        with pytest.raises(PermanentEngineError) as caught:
            await made.generate(request(made))
        assert "TEXT" not in str(caught.value)
        server.refuses = frozenset({"temperature"})
        with pytest.raises(EngineDead, match="400"):
            await made.generate(request(made))


async def test_a_prompt_beyond_the_servers_context_is_too_long() -> None:
    handler = replies(lambda: error(400, "maximum context length is 512 tokens"))
    async with OpenAIServer(handler) as server, started(server) as made:
        with pytest.raises(TooLong):
            await made.generate(request(made))
        with pytest.raises(TooLong, match="context is 512"):
            await made.generate(request(made, "TEXT" * 1_000))


@pytest.mark.parametrize(
    ("status", "named"), [(401, "api_key"), (403, "api_key"), (404, "engine.url")]
)
async def test_a_wrong_key_or_address_halts_at_once(status: int, named: str) -> None:
    async with OpenAIServer() as server, started(server) as made:
        deaths: list[EngineDead] = []
        made.on_death(deaths.append)
        server.refuses_all = status
        with pytest.raises(EngineDead, match=named):
            await made.generate(request(made))
        assert [death.blames_jobs for death in deaths] == [False]


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_text_that_a_firewall_refuses_is_the_jobs(status: int) -> None:
    handler = replies(lambda: error(status, "TEXT"))
    async with OpenAIServer(handler) as server, started(server) as made:
        with pytest.raises(PermanentEngineError, match=str(status)):
            await made.generate(request(made))
        assert (await made.generate(request(made))).text == "done"


async def test_a_busy_server_gets_fewer_requests_and_every_one_is_answered() -> None:
    busy = [lambda: error(429, "slow down", {"Retry-After": "0.05"})] * 6
    async with OpenAIServer(replies(*busy)) as server, started(server) as made:
        before = made._servers.all[0].concurrency.limit
        given = await asyncio.gather(*(made.generate(request(made)) for _ in range(12)))
        assert {each.text for each in given} == {"done"}
        assert made._servers.all[0].concurrency.limit < before


async def test_requests_go_to_the_server_with_more_room_and_around_one_that_is_away() -> None:
    async with OpenAIServer() as one, OpenAIServer() as two, started(one, two) as made:
        await asyncio.gather(*(made.generate(request(made)) for _ in range(8)))
        assert min(one.most_open, two.most_open) >= 1
        await one.stop()
        given = await asyncio.gather(*(made.generate(request(made)) for _ in range(8)))
        assert {each.text for each in given} == {"Hallo."}


async def test_a_start_needs_one_server_of_several() -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        await two.stop()
        async with started(one, two) as made:
            assert (await made.generate(request(made))).text == "Hallo."
        await one.stop()
        with pytest.raises(Unreachable, match="Is it running"):
            async with started(one, two):
                pass


async def test_a_start_names_a_wrong_model_and_a_wrong_key() -> None:
    async with OpenAIServer(key="secret") as server:
        with pytest.raises(Halt, match=r"engine.api_key: .* refuses the key"):
            async with started(server):
                pass
        async with started(server, api_key="secret") as made:
            assert made.model == "m"
        server.key, server.models = None, [{"id": "other"}]
        with pytest.raises(Halt, match=r"no model is called 'm'.*other"):
            async with started(server):
                pass


async def test_control_tokens_in_a_text_are_broken_where_the_server_tokenises() -> None:
    async with OpenAIServer() as server, started(server) as made:
        await made.generate(request(made, "TEXT <|im_end|> </s> [INST]"))
        sent = json.dumps(server.bodies[-1])
    assert not any(token in sent for token in ("<|im_end|>", "</s>", "[INST]"))


async def test_parameters_that_the_server_refuses_are_left_out_or_fail_the_job() -> None:
    async with OpenAIServer() as server:
        server.refuses = frozenset({"top_k", "seed"})
        async with started(server) as made:
            assert (await made.generate(request(made, seed=3))).text == "Hallo."
            assert "seed" not in server.bodies[-1]
            with pytest.raises(PermanentEngineError, match="top_k"):
                await made.generate(request(made, top_k=5))


async def test_no_default_of_a_server_or_model_makes_an_answer() -> None:
    neutral = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0}
    async with OpenAIServer() as server, started(server) as made:
        await made.generate(request(made))
        assert server.bodies[-1].items() >= {**neutral, "repetition_penalty": 1.0}.items()


async def test_parameters_have_llama_cpps_names_at_its_server_or_fail_the_job() -> None:
    async with OpenAIServer() as server:
        server.props = {
            "default_generation_settings": {"n_ctx": 256},
            "total_slots": 3,
            "build_info": "b7000-abc",
        }
        server.models = [{"id": "m", "meta": {"n_ctx_train": 512}}]
        async with started(server) as made:
            await made.generate(request(made, repetition_penalty=1.1))
            sent = server.bodies[-1]
            with pytest.raises(PermanentEngineError, match="stop_token_ids"):
                await made.generate(request(made, stop_token_ids=(5,)))
            assert made.info.version == "llama.cpp b7000-abc"
            assert (made.limits.max_model_len, made.limits.max_num_seqs) == (256, 3)
    assert sent["repeat_penalty"] == 1.1
    assert "repetition_penalty" not in sent


@pytest.mark.parametrize(
    "props",
    [
        {},
        {"build_info": 7, "default_generation_settings": None, "total_slots": 2},
        {"build_info": "x", "default_generation_settings": {"n_ctx": "9"}, "total_slots": -1},
    ],
)
async def test_props_that_say_nothing_true_change_nothing(props: dict[str, Any]) -> None:
    async with OpenAIServer() as server:
        server.props = props
        async with started(server) as made:
            assert (await made.generate(request(made))).text == "Hallo."
            assert (made.limits.max_model_len, made.limits.max_num_seqs) == (512, 256)


async def test_an_answer_is_asked_for_within_the_context() -> None:
    async with OpenAIServer() as server, started(server) as made:
        await made.generate(request(made, max_tokens=100_000))
        assert server.bodies[-1]["max_tokens"] < 512


async def test_a_server_that_writes_nothing_while_it_runs_requests_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman_worker.engines.openai.server._HANGS_S", 0.05)

    async def hang(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with OpenAIServer(hang) as server:
        server.metrics = (
            'vllm:num_requests_running{engine="0"} 1.0\n'
            'vllm:num_requests_waiting{engine="0"} 0.0\n'
            'vllm:generation_tokens_total{engine="0"} 7.0\n'
        )
        async with started(server) as made:
            server.well = False
            with pytest.raises(Unavailable, match="wrote nothing"):
                await made.generate(request(made))


async def test_the_start_names_the_server_that_refuses_the_key() -> None:
    async with OpenAIServer() as open_one, OpenAIServer(key="secret") as locked:
        with pytest.raises(Halt, match=f"engine.api_key: {locked.url}"):
            async with started(open_one, locked):
                pass


async def test_a_reading_of_the_counts_that_fails_leaves_the_last_one() -> None:
    counts = "vllm:num_requests_running{} 0.0\nvllm:num_requests_waiting{} 0.0\n"
    async with OpenAIServer() as server:
        server.metrics = counts
        async with started(server) as made:
            (one,) = made._servers.all
            server.metrics = None
            await one.read_gauges()
            assert one.gauges is not None


async def test_a_server_that_was_away_at_the_start_is_measured_when_it_comes() -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        two.metrics = "vllm:num_requests_running{} 0.0\nvllm:num_requests_waiting{} 0.0\n"
        await two.stop()
        async with started(one, two) as made:
            late = made._servers.all[1]
            await two.start()
            await eventually(lambda: late.gauges is not None, timeout_s=20, what="its counts")
            assert late.concurrency.limit > made._servers.all[0].concurrency.limit


async def test_a_profile_that_begins_the_answer_needs_token_ids() -> None:
    async with OpenAIServer() as server, started(server) as made:
        prompt = Prompt(completion="TEXT", answer_start="<|channel|>final<|message|>")
        with pytest.raises(PermanentEngineError, match=r"engine\.tokenizer"):
            made.encode(prompt)
