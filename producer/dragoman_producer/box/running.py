"""A running box: broker, Redis, worker and gateway; what it restarts, and what ends it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import redis.asyncio
from redis.exceptions import RedisError

from dragoman_connections.terminal import counted
from dragoman_producer.box.broker import EmbeddedBroker
from dragoman_producer.box.clearing import remove_unfinished, settle_engine
from dragoman_producer.box.embedded_redis import EmbeddedRedis
from dragoman_producer.box.engine_choice import EngineChoice, recognized
from dragoman_producer.box.failures import BoxFailed
from dragoman_producer.box.gateway_part import USUAL_PORT, gateway_part
from dragoman_producer.box.logs import bound_logs
from dragoman_producer.box.part_child import USAGE_ERROR, Part, PartChild, PartFailed
from dragoman_producer.box.room import shortages
from dragoman_producer.box.screen import BoxScreen
from dragoman_producer.box.worker_part import GRACE_S, worker_part
from dragoman_producer.operations.topics import DEFAULT_PARTITIONS
from dragoman_schemas import names
from dragoman_schemas.box import announce

_RENEW_S: Final = 20.0
_LOOK_S: Final = 2.0
_MOST_FAILURES: Final = 5
_STABLE_S: Final = 60.0
# The partitions that `dragoman topics create` asks for, so that command finds nothing to change.
_TOPICS: Final[dict[str, int]] = {
    names.JOBS_TOPIC: DEFAULT_PARTITIONS,
    names.DEAD_LETTER_TOPIC: DEFAULT_PARTITIONS,
}


class Box:
    """Addresses of the running services, and the tasks that watch them."""

    def __init__(
        self,
        choice: EngineChoice,
        data: Path,
        runtime: Path,
        screen: BoxScreen,
        *,
        bootstrap: str,
        grace_s: float,
    ) -> None:
        self.choice = choice
        self.bootstrap = bootstrap
        self._data = data
        self._runtime = runtime
        self._screen = screen
        self._redis = EmbeddedRedis(data, runtime)
        self._client = redis.asyncio.Redis.from_url(self._redis.url)
        self.worker = worker_part(
            choice, bootstrap=bootstrap, redis_url=self._redis.url, grace_s=grace_s
        )
        self.gateway_url: str | None = None

    @property
    def redis_url(self) -> str:
        """URL of Redis."""
        return self._redis.url

    @property
    def worker_log(self) -> Path:
        """The file that the worker writes its log to."""
        return self._data / f"{self.worker.name}.log"

    # --- Redis ----------------------------------------------------------------------------------

    async def keep_redis(self, ready: asyncio.Event) -> None:
        """Run Redis, and restart it when it dies. Raises ChildFailed."""
        while True:
            async with self._redis as server:
                if not ready.is_set():
                    await self._clear()
                await self._announce()
                ready.set()
                await server.wait()
            self._screen.line("Redis died and is started again; what it had answered is kept")
            self._redis = EmbeddedRedis(self._data, self._runtime)

    async def _clear(self) -> None:
        if removed := await remove_unfinished(self._client):
            self._screen.line(
                f"{counted(removed, 'job')} of an earlier box did not finish; rerun the command "
                "that submitted them"
            )
        engine = self.choice.identity or ""
        if removed := await settle_engine(self._client, self._data, engine):
            self._screen.line(f"Removed from Redis: {counted(removed, 'result')} of a test engine")

    async def announce_forever(self) -> None:
        """Keep the hash that tells publishers to hold back."""
        while True:
            await asyncio.sleep(_RENEW_S)
            with suppress(RedisError, OSError):  # it is being restarted
                await self._announce()

    async def _announce(self) -> None:
        async with self._client.pipeline(transaction=True) as pipe:
            for command in announce(names.Keys(), os.getpid()):
                pipe.execute_command(*command)
            await pipe.execute()

    async def withdraw(self) -> None:
        """Remove the hash, and close the connection."""
        with suppress(RedisError, OSError):
            await self._client.delete(names.Keys().box)
        await self._client.aclose()

    # --- worker and gateway ---------------------------------------------------------------------

    async def keep_worker(self, ready: asyncio.Event) -> None:
        """Run the worker, and restart it when it dies. Raises BoxFailed."""

        async def began(_: PartChild) -> None:
            ready.set()

        await self._keep(self.worker, began)

    async def keep_gateway(self, ready: asyncio.Event) -> None:
        """Run the gateway, and restart it when it dies. Raises BoxFailed."""

        async def began(child: PartChild) -> None:
            self.gateway_url = (await child.event("ready")).get("url")
            ready.set()

        part = gateway_part(
            self.choice, self._data, bootstrap=self.bootstrap, redis_url=self._redis.url
        )
        if part.settings["serve"].get("port", USUAL_PORT) != USUAL_PORT:
            self._screen.line(
                f"Port {USUAL_PORT} is taken by another program, so the gateway listens on another "
                "one; choose it with --set serve.port=PORT"
            )
        await self._keep(part, began)

    async def _keep(self, part: Part, ready: Callable[[PartChild], Awaitable[None]]) -> None:
        now = asyncio.get_running_loop().time
        failures, was_ready = 0, False
        while True:
            began = now()
            try:
                async with PartChild(part, data=self._data, runtime=self._runtime) as child:
                    await ready(child)
                    was_ready = True
                    error = await child.failure()
            except PartFailed as failed:
                error = failed
            failures = 0 if now() - began >= _STABLE_S else failures + 1
            if error.dropped:
                raise BoxFailed(f"{error}; rerun the command, which resumes")
            if not was_ready or failures > _MOST_FAILURES:
                raise BoxFailed(str(error), USAGE_ERROR if error.status == USAGE_ERROR else 1)
            self._screen.line(f"the {part.name} is started again: {error}")
            await asyncio.sleep(min(failures, 5))

    # --- disk and memory ------------------------------------------------------------------------

    async def watch_room(self) -> None:
        """Say once when the disk is full, or the memory for results is nearly used up.

        The logs are kept short.
        """
        said: set[str] = set()
        while True:
            await asyncio.sleep(_LOOK_S)
            await asyncio.to_thread(bound_logs, self._data)
            found = await shortages(self._client, self._data)
            for shortage in found - said:
                self._screen.error(shortage)
            said = found


@asynccontextmanager
async def running(
    choice: EngineChoice,
    data: Path,
    runtime: Path,
    screen: BoxScreen,
    *,
    gateway: bool = False,
    grace_s: float = GRACE_S,
) -> AsyncIterator[tuple[Box, asyncio.Future[None]]]:
    """Run a box while the context is open; yield it, and a future of the error that ends it.

    With `gateway` it has one too, whose key is in the data folder. Jobs in the worker may take
    `grace_s` seconds when the context is left. These errors are also raised
    where a service does not start: ChildFailed, BoxFailed and BoxUnusable.
    """
    stack = AsyncExitStack()
    try:
        async with screen.step("Starting a Kafka broker and a Redis server on this machine"):
            broker = await stack.enter_async_context(EmbeddedBroker(_TOPICS))
            choice = await recognized(choice)
            box = Box(choice, data, runtime, screen, bootstrap=broker.bootstrap, grace_s=grace_s)
            watch = _Watch(stack)
            stored, ready = asyncio.Event(), asyncio.Event()
            watch.add("broker", _until_dead(broker))
            watch.add("redis", box.keep_redis(stored))
            stack.push_async_callback(box.withdraw)
            await watch.until(stored)
            watch.add("announce", box.announce_forever())
            watch.add("room", box.watch_room())
        async with screen.step(_starting(choice)):
            watch.add("worker", box.keep_worker(ready))
            await watch.until(ready)
        if gateway:
            async with screen.step("Starting the gateway"):
                serving = asyncio.Event()
                watch.add("gateway", box.keep_gateway(serving))
                await watch.until(serving)
        yield box, watch.failed
    finally:
        parts = "gateway, worker" if gateway else "worker"
        async with screen.step(f"Stopping {parts}, Redis and broker"):
            await stack.aclose()


async def unless_ended(work: Coroutine[Any, Any, int], end: asyncio.Future[None] | None) -> int:
    """Return the status of the work; raise what ends the box before."""
    working = asyncio.create_task(work, name="work-in-box")
    either: list[asyncio.Future[Any]] = [working, *([end] if end is not None else [])]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if end is not None and end.done() and not working.done():
            end.result()
        return await working
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


def _starting(choice: EngineChoice) -> str:
    profile = f", profile {choice.profile}" if choice.profile else ""
    return f"Starting the engine: {choice.shown}{profile}"


async def _until_dead(broker: EmbeddedBroker) -> None:
    status = await broker.wait()
    raise BoxFailed(
        f"the embedded broker died (status {status}), and its queue with it: rerun the command, "
        "which resumes"
    )


class _Watch:
    """Tasks of a box, each ended when the stack is left: the last to start ends first."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stack.callback(self.failed.cancel)

    def add(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"box-{name}")
        task.add_done_callback(self._done)
        self._stack.push_async_callback(_ended, task)

    def _done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.failed.done():
            self.failed.set_exception(error)

    async def until(self, event: asyncio.Event) -> None:
        """Wait for an event. Raises the error of a task that fails before."""
        waiting = asyncio.create_task(event.wait(), name="box-start")
        try:
            either: list[asyncio.Future[Any]] = [waiting, self.failed]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self.failed.done():
                self.failed.result()
        finally:
            await _ended(waiting)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
