"""Batcher that answers concurrent requests by few shared flushes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Request = TypeVar("Request")
Reply = TypeVar("Reply")
Flush = Callable[[Sequence[Request]], Awaitable[Sequence[Reply | Exception]]]


class Batcher(Generic[Request, Reply]):
    """Collects the requests of one turn of the event loop and flushes them together.

    ``flush`` returns the replies of a batch in its order. An exception in place of a reply is
    raised to the caller of that request alone; one that ``flush`` raises, to every caller of the
    batch. At most ``flushes`` flushes run at once; requests that arrive meanwhile form the next
    batch. A batch is closed when the weight of its requests reaches ``at_most``; without ``weigh``
    each request weighs 1. Tasks exist only while there is work.
    """

    def __init__(
        self,
        flush: Flush[Request, Reply],
        *,
        at_most: int,
        name: str,
        flushes: int = 1,
        weigh: Callable[[Request], int] = lambda _: 1,
    ) -> None:
        self._flush = flush
        self._at_most = at_most
        self._name = name
        self._flushes = flushes
        self._weigh = weigh
        self._waiting: deque[tuple[Request, asyncio.Future[Reply]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: dict[asyncio.Future[None], Sequence[Request]] = {}
        self._starting = False
        self._closing = False

    @property
    def waiting(self) -> int:
        """Requests that no flush has started on: at most one per waiting caller."""
        return len(self._waiting)

    async def ask(self, request: Request) -> Reply:
        """Return the reply to one request."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, reply))
        if not self._starting:
            self._start_flushing()
        return await reply

    async def caught_up(self, concerns: Callable[[Request], bool]) -> None:
        """Return once the flushes under way with a request that `concerns` selects have ended.

        A flush goes on when a caller is cancelled, so its request may take effect afterwards.
        """
        found = [
            ended for ended, requests in self._under_way.items() if any(map(concerns, requests))
        ]
        if found:
            await asyncio.wait(found)

    async def close(self) -> None:
        """Cancel the flushes under way and every caller; a later request starts afresh."""
        self._closing = True  # redis-py may swallow a cancellation that meets a reply
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, reply in self._waiting:
            reply.cancel()
        self._waiting.clear()
        self._tasks.clear()  # a task cancelled before its first step leaves itself behind
        self._starting = self._closing = False

    def _start_flushing(self) -> None:
        if len(self._tasks) < self._flushes and not self._closing:
            self._starting = True
            self._tasks.add(asyncio.create_task(self._flush_all(), name=self._name))

    async def _flush_all(self) -> None:
        self._starting = False
        try:
            while not self._closing and (batch := self._next_batch()):
                if self._waiting:  # more than one batch takes
                    self._start_flushing()
                await self._answer(batch)
        finally:
            self._tasks.discard(asyncio.current_task())

    def _next_batch(self) -> list[tuple[Request, asyncio.Future[Reply]]]:
        batch: list[tuple[Request, asyncio.Future[Reply]]] = []
        weight = 0
        while self._waiting and weight < self._at_most:
            request, reply = self._waiting.popleft()
            if not reply.done():  # otherwise its caller was cancelled
                batch.append((request, reply))
                weight += self._weigh(request)
        return batch

    async def _answer(self, batch: list[tuple[Request, asyncio.Future[Reply]]]) -> None:
        replies: Sequence[Reply | Exception]
        requests = [request for request, _ in batch]
        ended = asyncio.get_running_loop().create_future()
        self._under_way[ended] = requests
        try:
            replies = await self._flush(requests)
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001  the callers handle it
            replies = [error] * len(batch)
        finally:
            del self._under_way[ended]
            ended.set_result(None)
        for (_, future), reply in zip(batch, replies, strict=True):
            if future.done():
                continue
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)
