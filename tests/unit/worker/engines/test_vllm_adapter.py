"""Tests of the vLLM adapter with a fake client, in states that a real vLLM cannot be put into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.engines.vllm import VllmEngine
from dragoman_worker.engines.vllm.launch import Built
from dragoman_worker.engines.vllm.outputs import RequestFailures
from dragoman_worker.engines.vllm.patches.table import ChosenPatches
from dragoman_worker.errors import EngineDead, PermanentEngineError, TooLong, TransientEngineError
from dragoman_worker.ports import Decoding, EngineLimits, GenerationRequest, Message, Prompt
from dragoman_worker.settings import EngineSettings
from support.builders.chat_tokenizers import byte_level


class EngineDeadError(Exception): ...


class Client:
    """A fake AsyncLLM with the methods that the adapter uses; `answer` makes its outputs."""

    def __init__(self, answer: Callable[[], AsyncIterator[Any]]) -> None:
        self._answer = answer
        self.requests: list[tuple[dict[str, Any], Any, str]] = []
        self.aborted: list[str] = []
        self.options: dict[str, Any] = {}
        self.errored = False
        self.down = 0

    def generate(
        self, prompt: dict[str, Any], params: Any, name: str, **options: Any
    ) -> AsyncIterator[Any]:
        self.requests.append((prompt, params, name))
        self.options = options
        return self._answer()

    async def abort(self, names: list[str]) -> None:
        self.aborted += names

    def get_tokenizer(self) -> object:
        return object()

    def shutdown(self) -> None:
        self.down += 1


def output(finish_reason: str | None, text: str = "Hallo.") -> Any:
    made = SimpleNamespace(text=text, finish_reason=finish_reason, token_ids=[1, 2])
    return SimpleNamespace(outputs=[made], prompt_token_ids=[5, 6, 7])


def answering(*outputs: Any) -> Client:
    async def answer() -> AsyncIterator[Any]:
        for one in outputs:
            if isinstance(one, BaseException):
                raise one
            yield one

    return Client(answer)


def hanging() -> Client:
    async def answer() -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield output("stop")

    return Client(answer)


def adapter(
    client: Client, *, on_cpu: bool = False, exact: bool = False, **options: Any
) -> VllmEngine:
    engine = VllmEngine(EngineSettings(model="m", exact_lengths=exact, options=options))
    folder: Any = SimpleNamespace(cleanup=lambda: None)
    engine._built = Built(
        client=client,
        version="0.32.0",
        patches=ChosenPatches(frozenset()),
        on_cpu=on_cpu,
        sampling=SimpleNamespace(
            SamplingParams=SimpleNamespace,
            RequestOutputKind=SimpleNamespace(FINAL_ONLY="final"),
            RepetitionDetectionParams=SimpleNamespace,
        ),
        failures=RequestFailures(
            SimpleNamespace(), SimpleNamespace(EngineDeadError=EngineDeadError)
        ),
        processes=(),
        report=Path("/nowhere/end.json"),
        folder=folder,
    )
    engine._limits = EngineLimits(4, 512, 512, 4_096)
    return engine


def request(length: int = 3, **decoding: Any) -> GenerationRequest:
    return GenerationRequest(
        "job/0", range(length), Decoding(**{"max_tokens": 8, **decoding}), "Hello.", "de", 1
    )


# --- traces ---------------------------------------------------------------------------------------

HEADERS = {"traceparent": f"00-{7:032x}-{7:016x}-01"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [(HEADERS, HEADERS), (None, {"traceparent": f"00-{1:032x}-{1:016x}-00"})],
    ids=["recorded", "not recorded"],
)
async def test_vllm_s_own_span_has_a_parent_that_decides_whether_it_is_recorded(
    given: dict[str, str] | None, sent: dict[str, str]
) -> None:
    client = answering(output("stop"))
    engine = adapter(client, otlp_traces_endpoint="http://127.0.0.1:9/v1/traces")
    await engine.generate(request()._replace(trace_headers=given))
    assert client.options == {"trace_headers": sent}


async def test_without_a_collector_vllm_is_given_no_trace() -> None:
    client = answering(output("stop"))
    await adapter(client).generate(request()._replace(trace_headers=HEADERS))
    assert client.options == {}


@pytest.mark.parametrize("reason", ["stop", "length", "abort", "error", "repetition"])
async def test_every_finish_reason_of_vllm_is_passed_on(reason: str) -> None:
    made = await adapter(answering(output(reason))).generate(request())
    assert (made.text, made.finish_reason) == ("Hallo.", reason)
    assert (made.prompt_tokens, made.completion_tokens) == (3, 2)


async def test_an_answer_without_stop_strings_is_decoded_once_by_the_adapter() -> None:
    tokenizer = byte_level(bos=False)
    made = SimpleNamespace(
        text="", finish_reason="length", token_ids=tokenizer.encode("Hi", add_special_tokens=False)
    )
    client = answering(SimpleNamespace(outputs=[made], prompt_token_ids=[5]))
    client.get_tokenizer = lambda: tokenizer  # type: ignore[method-assign]
    assert (await adapter(client).generate(request())).text == "Hi"
    assert client.requests[0][1].detokenize is False
    await adapter(client).generate(request(stop=("\n",)))
    assert client.requests[1][1].detokenize is True


@pytest.mark.parametrize(("source", "repetitions"), [("Hello.", 8), ("Ha " * 1_000, 3_000)])
async def test_the_source_decides_how_often_an_answer_may_repeat(
    source: str, repetitions: int
) -> None:
    client = answering(output("stop"))
    await adapter(client).generate(request()._replace(source=source))
    assert client.requests[0][1].repetition_detection.min_count == repetitions


async def test_a_prompt_that_the_chat_template_refuses_fails_its_item_with_the_reason() -> None:
    engine = adapter(answering())
    tokenizer = byte_level(bos=False)
    tokenizer.chat_template = "{{ raise_exception('No such language') }}"
    assert engine._built is not None
    engine._built.client.get_tokenizer = lambda: tokenizer
    with pytest.raises(PermanentEngineError, match=r"chat template refuses .* No such language"):
        engine.encode(Prompt(messages=(Message("user", "Hello"),)))
    assert engine.encode(Prompt(completion="Hello"))


@pytest.mark.parametrize("outputs", [[output(None)], [output("?")], []])
async def test_an_output_without_a_known_finish_reason_is_a_failure(outputs: list[Any]) -> None:
    with pytest.raises(PermanentEngineError) as failed:
        await adapter(answering(*outputs)).generate(request())
    assert not isinstance(failed.value, TransientEngineError)


async def test_request_ids_in_vllm_are_unique_and_prompts_are_token_ids() -> None:
    client = answering(output("stop"))
    engine = adapter(client)
    for _ in range(2):
        await engine.generate(request())
    prompts, names = [each[0] for each in client.requests], [each[2] for each in client.requests]
    assert prompts == [{"type": "token", "prompt_token_ids": [0, 1, 2]}] * 2
    assert len(set(names)) == 2


async def test_cancelling_aborts_the_request_and_leaves_nothing_in_flight() -> None:
    client = hanging()
    engine = adapter(client)
    task = asyncio.create_task(engine.generate(request()))
    await asyncio.sleep(0)
    busy = engine.stats()  # a real vLLM of this test session may have gauges in the registry
    assert busy.running + busy.waiting == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.aborted == [client.requests[0][2]]
    idle = engine.stats()
    assert idle.running + idle.waiting == 0


async def test_an_unknown_error_of_vllm_is_transient() -> None:
    with pytest.raises(TransientEngineError, match="slot"):
        await adapter(answering(RuntimeError("no slot"))).generate(request())


async def test_a_death_seen_by_a_request_calls_each_callback_once_even_a_late_one() -> None:
    engine = adapter(answering(EngineDeadError("gone")))
    deaths: list[EngineDead] = []
    engine.on_death(deaths.append)
    for _ in range(2):
        with pytest.raises(EngineDead):
            await engine.generate(request())
    assert len(deaths) == 1
    engine.on_death(deaths.append)
    assert len(deaths) == 2
    await engine.close()


async def test_an_engine_that_is_declared_dead_calls_back_and_refuses_requests() -> None:
    engine = adapter(hanging())
    deaths: list[EngineDead] = []
    engine.on_death(deaths.append)
    engine.declare_dead("does not answer")
    engine.declare_dead("does not answer")
    assert [str(death) for death in deaths] == ["vLLM's engine process does not answer"]
    with pytest.raises(EngineDead, match="does not answer"):
        await engine.generate(request())


@pytest.mark.parametrize(
    ("length", "max_tokens", "exact", "fits"),
    [
        (511, 8, False, True),
        (512, 8, False, False),
        (500, 12, True, True),
        (500, 13, True, False),
    ],
)
async def test_a_prompt_beyond_the_context_never_reaches_vllm(
    length: int, max_tokens: int, *, exact: bool, fits: bool
) -> None:
    client = answering(output("length"))
    engine, asked = adapter(client, exact=exact), request(length, max_tokens=max_tokens)
    if fits:
        await engine.generate(asked)
        return
    with pytest.raises(TooLong, match="512"):
        await engine.generate(asked)
    assert not client.requests


@pytest.mark.parametrize(
    ("made", "text", "finish"),
    [
        (output("length"), "Hallo.", "stop"),
        (output("length", " "), "…", "stop"),
        (output("abort", ""), "", "abort"),
    ],
)
async def test_an_answer_of_an_exact_length_is_a_complete_one(
    made: Any, text: str, finish: str
) -> None:
    answer = await adapter(answering(made), exact=True).generate(request())
    assert (answer.text, answer.finish_reason) == (text, finish)


async def test_closing_aborts_what_is_in_flight_and_is_idempotent() -> None:
    client = hanging()
    engine = adapter(client)
    task = asyncio.create_task(engine.generate(request()))
    await asyncio.sleep(0)
    await engine.close()
    await engine.close()
    assert client.aborted == [client.requests[0][2]]
    assert client.down == 1
    with pytest.raises(EngineDead):
        await engine.generate(request())
    task.cancel()
    await asyncio.wait([task])


async def test_an_engine_that_was_never_started_closes_and_refuses() -> None:
    engine = VllmEngine(EngineSettings(model="m"))
    with pytest.raises(EngineDead):
        await engine.generate(request())
    await engine.close()


@pytest.mark.parametrize(
    ("on_cpu", "decoding", "refused"),
    [
        (True, {"seed": 1, "temperature": 0.7}, True),
        (True, {"seed": 1}, False),
        (True, {"temperature": 0.7}, False),
        (False, {"seed": 1, "temperature": 0.7}, False),
    ],
)
async def test_a_seed_that_would_kill_vllm_on_a_cpu_fails_only_its_job(
    decoding: dict[str, Any], *, on_cpu: bool, refused: bool
) -> None:
    client = answering(output("stop"))
    engine = adapter(client, on_cpu=on_cpu)
    if not refused:
        assert (await engine.generate(request(**decoding))).finish_reason == "stop"
        return
    with pytest.raises(PermanentEngineError, match=r"sampling\.seed"):
        await engine.generate(request(**decoding))
    assert not client.requests
