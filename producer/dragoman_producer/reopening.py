"""Removal of a document's cancellation by a new submission or a replay of its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from dragoman_producer.redis_link import RedisLink, is_not_permitted, is_wrong_type


class Reopening:
    """Removes the cancellation of documents, each once only: a later cancellation stays.

    Every job of a document waits for the removal. One that fails or is cancelled is not counted as
    done: the next job tries again. ``done`` are the documents that need none; others are added.
    """

    def __init__(self, reopen: Callable[[str], Awaitable[None]], done: set[str]) -> None:
        self._reopen = reopen
        self._done = done
        self._under_way: dict[str, asyncio.Event] = {}

    async def once(self, document_id: str) -> None:
        """Return once the document's cancellation is removed. Raises what ``reopen`` raises."""
        while document_id not in self._done:
            ended = self._under_way.get(document_id)
            if ended is not None:
                await ended.wait()
                continue
            ended = self._under_way[document_id] = asyncio.Event()
            try:
                await self._reopen(document_id)
                self._done.add(document_id)
            finally:
                del self._under_way[document_id]
                ended.set()


async def remove_cancellations(link: RedisLink, keys: Iterable[str]) -> None:
    """Remove the cancellations under these keys.

    A removal is repeated only while the key holds the value that was read first. So a lost reply
    does not remove a cancellation that another program wrote meanwhile. A user without the right
    to read it, which clients did not need before, removes whatever is there.
    """
    distinct = sorted(set(keys))
    first: dict[str, Any] = {}

    async def remove() -> None:
        values = await _values(link, distinct)
        present = [
            ("DEL", key)
            for key, value in zip(distinct, values, strict=True)
            if first.setdefault(key, value) == value and value is not None
        ]
        if present:
            for (reply,) in await link.send_once(*([command] for command in present)):
                link.checked(reply)

    await link.run(remove)


async def _values(link: RedisLink, keys: Sequence[str]) -> list[Any]:
    """Return what the keys hold; b"" for what cannot be read, so that it is removed too."""
    replies = await link.send_once(*([("GET", key)] for key in keys))
    return [
        b"" if is_wrong_type(reply) or is_not_permitted(reply) else link.checked(reply)
        for (reply,) in replies
    ]
