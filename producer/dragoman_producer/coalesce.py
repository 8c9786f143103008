"""How do many concurrent calls become few round trips? They wait for one flush and share it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar

Request = TypeVar("Request")
Reply = TypeVar("Reply")


class Coalescer(Generic[Request, Reply]):
    """Joins calls that arrive while a flush is under way into the next one.

    ``flush`` answers a batch in its order; what it raises, every caller of the batch gets, and an
    exception in place of a reply only that one's caller.
    """

    def __init__(
        self,
        flush: Callable[[Sequence[Request]], Awaitable[Sequence[Reply | Exception]]],
        *,
        at_most: int,
    ) -> None:
        self._flush = flush
        self._at_most = at_most
        self._asked: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._flushing: asyncio.Task[None] | None = None

    async def ask(self, request: Request) -> Reply:
        """The reply to one request, by way of a batch."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked.append((request, future))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_all(), name="dragoman-coalescer")
        return await future

    async def close(self) -> None:
        """End the flush under way; those who wait on it are cancelled."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.wait([self._flushing])
        for _, future in self._asked:
            future.cancel()
        self._asked = []

    async def _flush_all(self) -> None:
        try:
            while self._asked:
                batch, self._asked = self._asked[: self._at_most], self._asked[self._at_most :]
                await self._answer(batch)
        finally:
            self._flushing = None

    async def _answer(self, batch: list[tuple[Request, asyncio.Future[Reply]]]) -> None:
        try:
            replies = await self._flush([request for request, _ in batch])
        except asyncio.CancelledError:
            for future in _open(batch):
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is the callers' to handle
            for future in _open(batch):
                future.set_exception(error)
        else:
            for (_, future), reply in zip(batch, replies, strict=True):
                _settle(future, reply)


def _settle(future: asyncio.Future[Reply], reply: Reply | Exception) -> None:
    if future.done():
        return
    if isinstance(reply, Exception):
        future.set_exception(reply)
    else:
        future.set_result(reply)


def _open(batch: list[tuple[Request, asyncio.Future[Reply]]]) -> Iterable[asyncio.Future[Reply]]:
    return (future for _, future in batch if not future.done())
