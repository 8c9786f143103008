"""Repair of fetch responses before aiokafka parses them; see docs/adr/0016."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from dragoman_connections.kafka_batches.repair import OnDefect, Repair, is_sound

_FETCH: Final = 1
"""API key of Fetch in Kafka's protocol."""
INSPECTED_AT_ONCE: Final = 1 << 18
"""A thread inspects larger responses: this many bytes take about a millisecond."""


class ReadableResponses:
    """Replacement for the `send` of one client that repairs fetch responses.

    One response expands to at most `budget` bytes; responses are repaired one at a time.
    """

    def __init__(
        self,
        send: Callable[..., Awaitable[Any]],
        *,
        budget: int,
        on_defect: OnDefect = lambda _offset, _error: None,
    ) -> None:
        self._send = send
        self._budget = budget
        self._on_defect = on_defect
        self._turn = asyncio.Lock()

    async def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the response; the response to a fetch is readable."""
        response = await self._send(*arguments, **options)
        if getattr(response, "API_KEY", None) == _FETCH:
            await self._repair(response)
        return response

    async def _repair(self, response: Any) -> None:
        size = sum(len(part[-1] or b"") for _, parts in response.topics for part in parts)
        if not size:
            return
        if size <= INSPECTED_AT_ONCE and _sound(response):
            return
        async with self._turn:
            await asyncio.to_thread(self._repaired, response)

    def _repaired(self, response: Any) -> None:
        if not _sound(response):
            repair = Repair(budget=self._budget, on_defect=self._on_defect)
            response.topics = [
                (topic, [(*part[:-1], repair.readable(part[-1] or b"")) for part in parts])
                for topic, parts in response.topics
            ]


def _sound(response: Any) -> bool:
    return all(is_sound(part[-1]) for _, parts in response.topics for part in parts if part[-1])
