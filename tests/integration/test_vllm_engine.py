"""The real vLLM does what the adapter promises: lengths, aborts, deaths, refusals."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm import VllmEngine
from dragoman_worker.engines.vllm.patches.table import WHOLE_OUTPUTS
from dragoman_worker.engines.vllm.sampling import sampling_params
from dragoman_worker.errors import EngineDead, Halt
from dragoman_worker.ports import Decoding, GenerationRequest, Prompt
from dragoman_worker.prompts.base import completed
from support.builders.engine_requests import (
    MAX_NUM_SEQS,
    a_request,
    begin_long,
    ended,
    engine_processes,
    gone,
    vllm_settings,
)
from support.builders.tiny_model import CONTEXT_TOKENS, SPECIAL_TOKENS
from support.processes.waiting import eventually

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("default"),  # warnings of vLLM and its libraries
]

WITHOUT_LOOPS = 2.0  # a frequency penalty: random weights repeat themselves otherwise


@pytest.fixture
def garbage_collected() -> Iterator[None]:
    """Collect what failed starts of vLLM left open, in the test that caused it.

    A failed start ends the worker's process, so vLLM need not close its ZeroMQ context.
    """
    yield
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unclosed context", ResourceWarning)
        gc.collect()


@pytest_asyncio.fixture(loop_scope="session")
async def own_engine(tiny_model: Path) -> AsyncIterator[VllmEngine]:
    """Start a vLLM for one test, which may kill it."""
    engine = VllmEngine(vllm_settings(tiny_model))
    await engine.start()
    yield engine
    await engine.close()


@pytest.fixture
def ending_engine(vllm_engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> VllmEngine:
    """Return the engine of the session; its answers end by themselves in this test."""
    settings = vllm_engine._settings.model_copy(update={"exact_lengths": False})
    monkeypatch.setattr(vllm_engine, "_settings", settings)
    return vllm_engine


# --- generating -----------------------------------------------------------------------------------


async def test_no_more_than_max_tokens_are_written_and_length_is_reported(
    ending_engine: VllmEngine,
) -> None:
    made = await ending_engine.generate(
        a_request(ending_engine, decoding=Decoding(5, frequency_penalty=WITHOUT_LOOPS))
    )
    assert (made.completion_tokens, made.finish_reason) == (5, "length")


async def test_the_context_cuts_an_answer_off_and_that_is_length_too(
    ending_engine: VllmEngine,
) -> None:
    ids = list(ending_engine.encode(Prompt(completion="a b " * CONTEXT_TOKENS)))[
        : CONTEXT_TOKENS - 9
    ]
    asked = GenerationRequest(
        "cut", ids, Decoding(100, frequency_penalty=WITHOUT_LOOPS), "", "de", 1
    )
    made = await ending_engine.generate(asked)
    assert (made.completion_tokens, made.finish_reason) == (9, "length")


async def test_a_repetition_is_stopped_early_and_reported(ending_engine: VllmEngine) -> None:
    made = await ending_engine.generate(
        a_request(ending_engine, decoding=Decoding(max_tokens=400, temperature=0.0))
    )
    assert made.finish_reason == "repetition"
    assert made.completion_tokens < 200


async def test_a_stop_text_ends_with_stop_and_is_left_out(ending_engine: VllmEngine) -> None:
    rambled = Decoding(max_tokens=40, frequency_penalty=WITHOUT_LOOPS)
    text = (await ending_engine.generate(a_request(ending_engine, decoding=rambled))).text
    mark = next(letter for letter in text[len(text) // 2 :] if letter.isascii())
    stopping = Decoding(max_tokens=40, frequency_penalty=WITHOUT_LOOPS, stop=(mark,))
    made = await ending_engine.generate(a_request(ending_engine, decoding=stopping))
    assert made.finish_reason == "stop"
    assert text.startswith(made.text)
    assert mark not in made.text


async def test_vllm_reads_the_very_ids_it_is_given_and_gives_one_output(
    vllm_engine: VllmEngine,
) -> None:
    asked = a_request(vllm_engine)
    built = vllm_engine._built
    assert built is not None
    params = sampling_params(built.sampling, Decoding(max_tokens=20), exact=20)
    prompt = {"type": "token", "prompt_token_ids": list(asked.prompt_ids)}
    outputs = [output async for output in built.client.generate(prompt, params, "ids")]
    assert len(outputs) == 1
    assert outputs[0].prompt_token_ids == asked.prompt_ids


async def test_vllms_own_metrics_count_every_token(vllm_engine: VllmEngine) -> None:
    names = [
        "vllm:generation_tokens_total",
        "vllm:inter_token_latency_seconds_count",
        "vllm:inter_token_latency_seconds_sum",
    ]

    def counted() -> list[float]:
        return [REGISTRY.get_sample_value(name, labels) or 0.0 for name in names]

    labels = next(
        sample.labels
        for metric in REGISTRY.restricted_registry(names).collect()
        for sample in metric.samples
        if sample.name == names[0]
    )
    before = counted()
    requests = [a_request(vllm_engine, decoding=Decoding(max_tokens=20)) for _ in "ab"]
    await ended([asyncio.ensure_future(vllm_engine.generate(one)) for one in requests])
    tokens, latencies, seconds = (now - then for now, then in zip(counted(), before, strict=True))
    assert (tokens, latencies) == (40, 38)
    assert seconds > 0


async def test_an_answer_crosses_to_the_front_end_in_two_messages_or_by_token_as_vllm_does(
    vllm_engine: VllmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vllm_engine._built is not None
    processor, received = vllm_engine._built.client.output_processor, list[int]()
    process = processor.process_outputs

    def counting(outputs: list[Any], *others: Any, **named: Any) -> Any:
        received.extend(len(output.new_token_ids) for output in outputs)
        return process(outputs, *others, **named)

    monkeypatch.setattr(processor, "process_outputs", counting)
    decoding = Decoding(max_tokens=20)
    made = await vllm_engine.generate(a_request(vllm_engine, decoding=decoding))
    assert made.completion_tokens == 20
    whole = WHOLE_OUTPUTS in vllm_engine._built.patches
    assert received == ([1, 19] if whole else [1] * 20)


async def test_a_control_token_in_a_text_stays_text(vllm_engine: VllmEngine) -> None:
    source = "Write <|end|> and <|fr|>."
    prompt = completed("<|en|>", source, "<|de|><|translation|>")
    ids = vllm_engine.encode(prompt)
    assert [SPECIAL_TOKENS[i] for i in ids if i < len(SPECIAL_TOKENS)] == [
        "<|en|>",
        "<|de|>",
        "<|translation|>",
    ]


async def test_cancelling_aborts_inside_vllm(vllm_engine: VllmEngine) -> None:
    tasks = await begin_long(vllm_engine, MAX_NUM_SEQS)
    for task in tasks:
        task.cancel()
    await ended(tasks)
    await vllm_engine.generate(a_request(vllm_engine))

    def running_in_vllm() -> float:
        return sum(
            sample.value
            for metric in REGISTRY.restricted_registry(["vllm:num_requests_running"]).collect()
            for sample in metric.samples
        )

    await eventually(lambda: running_in_vllm() == 0, timeout_s=30, what="vLLM's own count at 0")


# --- invalid settings -----------------------------------------------------------------------------


@pytest.mark.usefixtures("garbage_collected")
async def test_a_missing_model_folder_is_named(tmp_path: Path) -> None:
    engine = VllmEngine(vllm_settings(tmp_path / "nowhere"))
    with pytest.raises(SettingsError, match=r"engine\.model: there is no folder .*nowhere"):
        await engine.start()


@pytest.mark.usefixtures("garbage_collected")
async def test_a_context_beyond_the_models_is_refused_with_the_largest(tiny_model: Path) -> None:
    engine = VllmEngine(vllm_settings(tiny_model, max_model_len=100_000))
    with pytest.raises(SettingsError) as refused:
        await engine.start()
    assert "engine.options.max_model_len" in str(refused.value)
    assert str(CONTEXT_TOKENS) in str(refused.value)


@pytest.mark.usefixtures("garbage_collected")
async def test_a_context_beyond_the_kv_cache_is_refused_with_the_largest_that_fits(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    engine = VllmEngine(
        vllm_settings(
            tiny_model,
            max_model_len=65_536,
            hf_overrides={"max_position_embeddings": 65_536},
            kv_cache_memory_bytes=4 * 1024 * 1024,
        )
    )
    with pytest.raises(SettingsError) as refused:
        await engine.start()
    assert str(refused.value).startswith("engine.options.max_model_len: ")
    assert "65536 tokens" in str(refused.value)
    largest = re.search(r"the largest that fits is (\d+)", str(refused.value))
    assert largest is not None
    assert 16_000 < int(largest[1]) <= 16_384
    assert "\n" not in str(refused.value)


# --- the engine's process -------------------------------------------------------------------------


async def test_a_killed_engine_fails_all_in_flight_and_calls_back_once(
    own_engine: VllmEngine,
) -> None:
    deaths: list[EngineDead] = []
    own_engine.on_death(deaths.append)
    tasks = await begin_long(own_engine, 4)
    killed_at = time.monotonic()
    kill_core(own_engine)
    results = await ended(tasks)
    assert time.monotonic() - killed_at < 60, "not after a time-out of minutes"
    assert [type(result) for result in results] == [EngineDead] * 4
    with pytest.raises(EngineDead):
        await own_engine.generate(a_request(own_engine))
    await asyncio.sleep(0)
    assert len(deaths) == 1
    assert "signal 9" in str(deaths[0])


async def test_an_engine_killed_while_idle_is_noticed_and_no_child_is_left(
    own_engine: VllmEngine,
) -> None:
    before = processes_of(own_engine)
    deaths: list[EngineDead] = []
    own_engine.on_death(deaths.append)
    kill_core(own_engine)
    await eventually(lambda: deaths, timeout_s=30, what="the callback")
    await own_engine.close()
    gone(before)
    assert len(deaths) == 1


async def test_a_frozen_engine_is_silent_and_declared_dead_leaves_no_process_and_no_socket(
    own_engine: VllmEngine,
) -> None:
    assert own_engine._built is not None
    folder, before = Path(own_engine._built.folder.name), processes_of(own_engine)
    assert sockets_in(folder)
    tasks = await begin_long(own_engine, 2)
    for process in before:
        process.suspend()

    async def silent() -> bool:
        signs = own_engine.signs_of_life()
        await asyncio.sleep(0.2)
        return own_engine.signs_of_life() == signs

    await eventually(silent, timeout_s=30, what="no message, once those on their way are read")
    own_engine.declare_dead("does not answer")
    assert [type(result) for result in await ended(tasks)] == [EngineDead] * 2
    await own_engine.close()
    gone(before)
    assert not sockets_in(folder)


@pytest.mark.usefixtures("garbage_collected")
async def test_a_cancelled_start_leaves_no_process(tiny_model: Path) -> None:
    others = {process.pid for process in engine_processes()}
    engine = VllmEngine(vllm_settings(tiny_model))
    start = asyncio.create_task(engine.start())
    await eventually(
        lambda: engine_processes_beside(others), timeout_s=120, what="an engine process"
    )
    start.cancel()
    with pytest.raises((asyncio.CancelledError, Halt)):
        await asyncio.wait_for(start, 60)
    assert not engine_processes_beside(others)
    await engine.close()


# --- helpers --------------------------------------------------------------------------------------


def sockets_in(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.is_socket()]


def kill_core(engine: VllmEngine) -> None:
    assert engine._built is not None
    (core,) = engine._built.processes
    assert core.pid is not None
    os.kill(core.pid, signal.SIGKILL)


def processes_of(engine: VllmEngine) -> list[psutil.Process]:
    assert engine._built is not None
    (core,) = engine._built.processes
    parent = psutil.Process(core.pid)
    return [parent, *parent.children(recursive=True)]


def engine_processes_beside(others: object) -> list[psutil.Process]:
    known = others if isinstance(others, set) else set()
    return [process for process in engine_processes() if process.pid not in known]


# --- prefills -------------------------------------------------------------------------------------


async def test_with_a_prefill_share_a_full_engine_lets_requests_in_together(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's sockets are removed with it."""
    share = 0.5
    grouped = {"prefill_share": share, "patches": "auto"}
    engine = VllmEngine(vllm_settings(tiny_model).model_copy(update=grouped))
    await engine.start()
    assert engine._built is not None
    folder = Path(engine._built.folder.name)
    assert sockets_in(folder)
    processor, firsts = engine._built.client.output_processor, list[int]()
    process = processor.process_outputs

    def counting(outputs: list[Any], *others: Any, **named: Any) -> Any:
        firsts.append(sum(len(output.new_token_ids) == 1 for output in outputs))
        return process(outputs, *others, **named)

    monkeypatch.setattr(processor, "process_outputs", counting)
    lengths = [20 + number for number in range(MAX_NUM_SEQS)] * 3
    requests = [a_request(engine, decoding=Decoding(max_tokens=length)) for length in lengths]
    try:
        async with asyncio.timeout(60):
            made = await asyncio.gather(*(engine.generate(each) for each in requests))
    finally:
        await engine.close()
    assert not sockets_in(folder)
    assert [each.completion_tokens for each in made] == lengths
    groups = [count for count in firsts if count]
    assert sum(groups) == len(lengths)
    in_a_full_engine = groups[next(n for n in range(9) if sum(groups[:n]) >= MAX_NUM_SEQS) : -1]
    assert in_a_full_engine
    assert min(in_a_full_engine) >= MAX_NUM_SEQS * share
