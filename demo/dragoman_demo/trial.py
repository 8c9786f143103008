"""What makes up the trial, and in which order does it start and stop?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_demo.broker import EmbeddedBroker
from dragoman_demo.embedded_redis import EmbeddedRedis
from dragoman_demo.screen import Screen
from dragoman_demo.worker_child import EngineKind, WorkerChild
from dragoman_producer.operations.topics import DEFAULT_PARTITIONS
from dragoman_schemas import names

# As many partitions as `dragoman topics create` asks for: on the trial it finds all as it wants it.
_TOPICS: Final[dict[str, int]] = {
    names.JOBS_TOPIC: DEFAULT_PARTITIONS,
    names.DEAD_LETTER_TOPIC: DEFAULT_PARTITIONS,
}
_WAITING_FOR: Final = {
    EngineKind.VLLM: "Loading vLLM and the model on the CPU (usually 20-60 s)",
    EngineKind.ECHO: "Starting a worker with the echo engine",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """Where the running parts are reached."""

    bootstrap: str
    redis_url: str
    worker: WorkerChild


@asynccontextmanager
async def running(engine: EngineKind, folder: Path, screen: Screen) -> AsyncIterator[Trial]:
    """Broker, Redis and a ready worker while the context is open; afterwards none is left.

    The worker's log stays in `folder`. Raises ChildFailed where a part does not start.
    """
    stack = AsyncExitStack()
    try:
        with screen.step("Starting a Kafka broker and a Redis server on this machine"):
            broker = await stack.enter_async_context(EmbeddedBroker(_TOPICS))
            redis = await stack.enter_async_context(EmbeddedRedis())
        worker = WorkerChild(engine, bootstrap=broker.bootstrap, redis_url=redis.url, folder=folder)
        with screen.step(_WAITING_FOR[engine]):
            await stack.enter_async_context(worker)
        yield Trial(broker.bootstrap, redis.url, worker)
    finally:
        with screen.step("Stopping worker, Redis and broker"):
            await stack.aclose()


async def unless_worker_fails(trial: Trial, doing: Coroutine[None, None, int]) -> int:
    """What `doing` answers; ChildFailed at once where the worker ends meanwhile."""
    acting = asyncio.create_task(doing, name="act")
    failing = asyncio.create_task(trial.worker.fails(), name="worker-watch")
    try:
        await asyncio.wait({acting, failing}, return_when=asyncio.FIRST_COMPLETED)
        return acting.result() if acting.done() else await failing
    finally:
        for task in (acting, failing):
            task.cancel()
        await asyncio.gather(acting, failing, return_exceptions=True)
