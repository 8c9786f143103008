"""Start of the engine that the settings name; only what that engine needs is imported."""

from __future__ import annotations

import os
import time
from contextlib import AsyncExitStack

from dragoman_connections.tracing import traces_url
from dragoman_worker.log import logger
from dragoman_worker.ports import Engine
from dragoman_worker.settings import EngineSettings, WorkerSettings


def open_engine(
    settings: EngineSettings, *, log_level: str = "info", wait_s: float = 0.0
) -> Engine:
    """Return the engine that ``engine.kind`` names, not started yet.

    `log_level` is ``log.level``: at ``debug`` vLLM's own log is shown in full. For `wait_s` seconds
    an engine that is a server is waited for.
    Raises SettingsError if an option is invalid.
    """
    if settings.kind == "echo":
        from dragoman_worker.engines.echo import EchoEngine  # noqa: PLC0415 - lazy on purpose

        return EchoEngine(settings)
    if settings.kind == "openai":
        from dragoman_worker.engines.openai import OpenAIEngine  # noqa: PLC0415 - lazy on purpose

        return OpenAIEngine(settings, wait_s=wait_s)
    from dragoman_worker.engines.vllm import VllmEngine  # noqa: PLC0415 - lazy on purpose

    return VllmEngine(settings, log_level=log_level)


async def start_engine(stack: AsyncExitStack, settings: WorkerSettings) -> Engine:
    """Start the engine and log its limits; `stack` closes it. Raises SettingsError and Halt."""
    engine = open_engine(
        _traced(settings), log_level=settings.log.level, wait_s=settings.connect_timeout_s
    )
    stack.push_async_callback(engine.close)
    started = time.monotonic()
    logger().info("engine_starting", kind=settings.engine.kind, model=settings.engine.model)
    await engine.start()
    limits = engine.limits
    logger().info(
        "engine_ready",
        seconds=round(time.monotonic() - started, 1),
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        max_model_len=limits.max_model_len,
        kv_cache_tokens=limits.kv_cache_tokens,
    )
    return engine


def _traced(settings: WorkerSettings) -> EngineSettings:
    """Return the engine's settings, by which vLLM sends its spans to the same collector."""
    engine = settings.engine
    if not settings.tracing.enabled or engine.kind != "vllm":
        return engine
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")  # vLLM's: gRPC
    traced = {"otlp_traces_endpoint": traces_url(settings.tracing)}
    return engine.model_copy(update={"options": {**traced, **engine.options}})
