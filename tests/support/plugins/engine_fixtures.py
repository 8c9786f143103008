"""Fixtures of engines: one real vLLM on the tiny model per session, and an echo engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.engines.openai import OpenAIEngine
from dragoman_worker.engines.vllm import VllmEngine, arguments
from dragoman_worker.settings import EchoSettings, EngineSettings
from support.builders.engine_requests import MAX_NUM_SEQS, ONE_PROCESS, OPTIONS, vllm_settings
from support.builders.tiny_model import CONTEXT_TOKENS, make_tiny_model
from support.processes.forked_engine import forked_engines
from support.services.llama_server import LlamaServer
from support.services.vllm_server import VllmServer


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a Qwen3 with random weights and return its folder; its engines are forked from now on.

    The session has one.
    """
    pytest.importorskip("vllm", reason="vLLM is not installed")
    model = make_tiny_model(tmp_path_factory.mktemp("tiny-model"))
    arguments.prepare_environment(vllm_settings(model), verbose=False)
    with forked_engines():
        yield model


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def vllm_engine(tiny_model: Path) -> AsyncIterator[VllmEngine]:
    """Start a vLLM for tests in the session's loop; do not close or kill it."""
    engine = VllmEngine(vllm_settings(tiny_model))
    await engine.start()
    yield engine
    await engine.close()


@pytest.fixture(scope="session")
def vllm_server(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """Start a `vllm serve` on the tiny model; do not kill it."""
    given = {**OPTIONS, "distributed_executor_backend": ONE_PROCESS}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    with VllmServer(tiny_model, tmp_path_factory.mktemp("vllm-server"), *options) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def openai_engine(vllm_server: VllmServer, tiny_model: Path) -> AsyncIterator[OpenAIEngine]:
    """Start the engine whose server is `vllm_server`, with token ids."""
    engine = OpenAIEngine(
        EngineSettings(
            kind="openai",
            url=(vllm_server.url,),
            model=vllm_server.name,
            tokenizer=str(tiny_model),
            profile="demo",
            exact_lengths=True,
            options=OPTIONS,
        )
    )
    await engine.start()
    yield engine
    await engine.close()


@pytest.fixture(scope="session")
def llama_installed() -> None:
    """Skip where this machine has no server of llama.cpp."""
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")


@pytest.fixture(scope="session")
def llama_server(
    llama_installed: None, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LlamaServer]:
    """Start llama.cpp's server on the tiny model; do not kill it."""
    folder = tmp_path_factory.mktemp("llama-server")
    with LlamaServer(tiny_model, folder, slots=MAX_NUM_SEQS, context=CONTEXT_TOKENS) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def llama_engine(llama_server: LlamaServer, tiny_model: Path) -> AsyncIterator[OpenAIEngine]:
    """Start the engine whose server is `llama_server`, with token ids; it finds out the slots."""
    engine = OpenAIEngine(
        EngineSettings(
            kind="openai",
            url=(llama_server.url,),
            tokenizer=str(tiny_model),
            profile="demo",
            exact_lengths=True,
            options={"max_num_batched_tokens": OPTIONS["max_num_batched_tokens"]},
        )
    )
    await engine.start()
    yield engine
    await engine.close()


@pytest_asyncio.fixture(loop_scope="session")
async def echo_engine() -> AsyncIterator[EchoEngine]:
    """Start an echo engine with the limits of `vllm_engine` and 20 ms of latency."""
    engine = EchoEngine(
        EngineSettings(
            kind="echo",
            exact_lengths=True,
            echo=EchoSettings(latency_s=0.02, faults=True),
            options={**OPTIONS, "max_model_len": CONTEXT_TOKENS},
        )
    )
    await engine.start()
    yield engine
    await engine.close()
