"""Services of the demo: broker, Redis and worker, started in this order and stopped in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_demo.screen import Screen
from dragoman_demo.worker_child import DemoWorker, EngineKind
from dragoman_producer.box.broker import EmbeddedBroker
from dragoman_producer.box.embedded_redis import EmbeddedRedis
from dragoman_producer.operations.topics import DEFAULT_PARTITIONS
from dragoman_schemas import names

# The partitions that `dragoman topics create` asks for, so that command finds nothing to change.
_TOPICS: Final[dict[str, int]] = {
    names.JOBS_TOPIC: DEFAULT_PARTITIONS,
    names.DEAD_LETTER_TOPIC: DEFAULT_PARTITIONS,
}
_WAITING_FOR: Final = {
    EngineKind.VLLM: "Loading vLLM and the model on the CPU (usually 20-60 s)",
    EngineKind.ECHO: "Starting a worker with the echo engine",
}


@dataclass(frozen=True, slots=True)
class Services:
    """Addresses of the running services."""

    bootstrap: str
    redis_url: str
    worker: DemoWorker


@asynccontextmanager
async def running(engine: EngineKind, folder: Path, screen: Screen) -> AsyncIterator[Services]:
    """Run broker, Redis and a ready worker while the context is open; then stop all of them.

    The worker's log stays in `folder`. Raises ChildFailed where a service does not start.
    """
    stack = AsyncExitStack()
    try:
        with screen.step("Starting a Kafka broker and a Redis server on this machine"):
            broker = await stack.enter_async_context(EmbeddedBroker(_TOPICS))
            redis = await stack.enter_async_context(EmbeddedRedis(folder, folder))
        worker = DemoWorker(engine, bootstrap=broker.bootstrap, redis_url=redis.url, folder=folder)
        with screen.step(_WAITING_FOR[engine]):
            await stack.enter_async_context(worker)
        yield Services(broker.bootstrap, redis.url, worker)
    finally:
        with screen.step("Stopping worker, Redis and broker"):
            await stack.aclose()


async def unless_worker_fails(services: Services, doing: Coroutine[None, None, int]) -> int:
    """Return the result of `doing`; raise ChildFailed at once where the worker exits before."""
    acting = asyncio.create_task(doing, name="act")
    failing = asyncio.create_task(services.worker.wait_for_failure(), name="worker-watch")
    try:
        await asyncio.wait({acting, failing}, return_when=asyncio.FIRST_COMPLETED)
        return acting.result() if acting.done() else await failing
    finally:
        for task in (acting, failing):
            task.cancel()
        await asyncio.gather(acting, failing, return_exceptions=True)
