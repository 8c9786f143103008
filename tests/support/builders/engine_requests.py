"""Settings and requests for tests of the engines, with vLLM on the tiny model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import psutil

from dragoman_worker.ports import Decoding, Engine, Generation, GenerationRequest
from dragoman_worker.prompts.base import completed
from dragoman_worker.settings import EngineSettings
from support.builders.tiny_model import CONTEXT_TOKENS
from support.processes.waiting import eventually, wait_until

MAX_NUM_SEQS = 8
PATCHES: Literal["auto", "off"] = (
    "off" if os.environ.get("DRAGOMAN_ENGINE__PATCHES") == "off" else "auto"
)
"""`engine.patches` by the environment, which workers read too: every test passes with `off`."""
OPTIONS = {"max_num_seqs": MAX_NUM_SEQS, "max_num_batched_tokens": 512}


ONE_PROCESS = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
"""The executor inside the engine's process, as on one GPU. On CPUs vLLM uses one in a separate
process, to bind threads, which imports everything once more: 20 seconds per start."""


def vllm_settings(model: Path, **options: Any) -> EngineSettings:
    """Return settings for vLLM on `model`, small enough for two cores."""
    small = {**OPTIONS, "distributed_executor_backend": ONE_PROCESS}
    return EngineSettings(
        kind="vllm",
        model=str(model),
        profile="demo",
        patches=PATCHES,
        exact_lengths=True,  # of random weights: no answer of the start is judged
        options={**small, **options},
    )


def a_request(
    engine: Engine,
    source: str = "Hello, how are you?",
    *,
    decoding: Decoding | None = None,
    request_id: str = "test",
    attempt: int = 1,
) -> GenerationRequest:
    """Return a request that continues `source` by 8 tokens unless `decoding` is given."""
    prompt = completed("<|en|>", source, "<|de|>")
    return GenerationRequest(
        request_id=request_id,
        prompt_ids=engine.encode(prompt),
        decoding=decoding or Decoding(max_tokens=8),
        source=source,
        target_lang="de",
        attempt=attempt,
    )


def a_long_request(engine: Engine) -> GenerationRequest:
    """Return a request that takes at least 10 s on either engine."""
    return a_request(
        engine,
        "#!sleep 20\nHello, how are you?",
        decoding=Decoding(max_tokens=CONTEXT_TOKENS - 64),
    )


def begin(engine: Engine, *requests: GenerationRequest) -> list[asyncio.Task[Generation]]:
    """Start one task per request."""
    return [asyncio.create_task(engine.generate(request)) for request in requests]


async def begin_long(engine: Engine, count: int) -> list[asyncio.Task[Generation]]:
    """Start `count` long requests and wait until the engine counts all as running."""
    return await begin_running(engine, count, a_long_request)


async def begin_running(
    engine: Engine, count: int, make: Callable[[Engine], GenerationRequest]
) -> list[asyncio.Task[Generation]]:
    """Start `count` requests and wait until the engine counts all as running.

    A request that ends before that is followed by another: a busy machine may see none of them run.
    """
    tasks = begin(engine, *(make(engine) for _ in range(count)))

    def all_running() -> bool:
        for place, task in enumerate(tasks):
            if task.done():  # the engine reads its gauges at intervals: keep it busy until then
                (tasks[place],) = begin(engine, make(engine))
        return engine.stats().running == count

    await eventually(all_running, timeout_s=60, what=f"{count} running", longest_pause_s=0.02)
    return tasks


async def ended(tasks: Iterable[asyncio.Task[Generation]]) -> list[Generation | BaseException]:
    """Return the outcome of each task; raises TimeoutError after three minutes."""
    async with asyncio.timeout(180):
        return await asyncio.gather(*tasks, return_exceptions=True)


def gone(processes: list[psutil.Process]) -> None:
    """Wait until none of `processes` runs; raises NotInTime otherwise."""
    wait_until(
        lambda: not any(map(_runs, processes)),
        timeout_s=20,
        what="no engine process",
    )


def engine_processes() -> list[psutil.Process]:
    """Return vLLM's processes below this one, without Python's resource tracker."""
    return [child for child in psutil.Process().children(recursive=True) if _is_vllm(child)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_vllm(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and (
            "VLLM" in process.name() or "spawn_main" in " ".join(process.cmdline())
        )
    except psutil.NoSuchProcess:
        return False
