"""Concurrent work on a long or endless source, with results in order or as they end."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


async def in_order(
    source: Iterable[In] | AsyncIterable[In],
    work: Callable[[In], Awaitable[Out]],
    *,
    in_flight: int,
) -> AsyncGenerator[Out]:
    """Run ``work`` on every item, with at most ``in_flight`` items drawn and not yet yielded.

    An error of the source or of the work is raised in its place in the order, and cancels the
    remaining work. A slow source does not delay the results of earlier items.
    """
    slots = asyncio.Semaphore(in_flight)
    begun: asyncio.Queue[asyncio.Task[Out] | None] = asyncio.Queue()

    async def one(item: In) -> Out:
        return await work(item)

    async def feed() -> None:
        try:
            async for item in _each(source):
                await slots.acquire()
                begun.put_nowait(asyncio.create_task(one(item), name="dragoman-submit"))
        finally:
            begun.put_nowait(None)

    feeding = asyncio.create_task(feed(), name="dragoman-feed")
    try:
        while (task := await begun.get()) is not None:
            yield await task
            slots.release()
        await feeding
    finally:
        await _cancel([feeding])
        await _cancel([task for task in _drained(begun) if task is not None])


async def as_ended(
    source: Iterable[In] | AsyncIterable[In],
    work: Callable[[In], Awaitable[Out]],
    *,
    in_flight: int,
) -> AsyncGenerator[Out]:
    """Do the same as `in_order`, with results in the order in which the work ends.

    An error of the source is raised at once, and cancels the work.
    """
    slots = asyncio.Semaphore(in_flight)
    running: set[asyncio.Task[Out]] = set()
    ended: asyncio.Queue[asyncio.Task[Out] | None] = asyncio.Queue()

    async def one(item: In) -> Out:
        return await work(item)

    async def feed() -> None:
        try:
            async for item in _each(source):
                await slots.acquire()
                task = asyncio.create_task(one(item), name="dragoman-await")
                running.add(task)
                task.add_done_callback(ended.put_nowait)
        finally:
            ended.put_nowait(None)

    feeding = asyncio.create_task(feed(), name="dragoman-feed")
    try:
        while running or not feeding.done():
            if (task := await ended.get()) is None:
                await feeding
                continue
            running.discard(task)
            yield await task
            slots.release()
    finally:
        await _cancel([feeding])
        await _cancel([*running])


async def _each(source: Iterable[In] | AsyncIterable[In]) -> AsyncIterator[In]:
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    else:
        for item in source:
            yield item


def _drained(queue: asyncio.Queue[asyncio.Task[Out] | None]) -> Iterable[asyncio.Task[Out] | None]:
    while not queue.empty():
        yield queue.get_nowait()


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
