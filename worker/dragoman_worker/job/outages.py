"""Repeats calls to servers that are away, and knows which servers those are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

import tenacity

from dragoman_worker.errors import Unavailable

T = TypeVar("T")
P = ParamSpec("P")

STORE: Final = "store"
DEAD_LETTERS: Final = "dead letters"
RESULTS: Final = "results"

MAX_PAUSE_S: Final = 5.0
"""Longest back-off between two tries."""


class Outages:
    """The servers of one worker that did not answer the last call to them."""

    def __init__(self, max_pause_s: float = MAX_PAUSE_S) -> None:
        self._max_pause_s = max_pause_s
        self._away: set[str] = set()

    async def until_available(
        self, server: str, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Repeat an idempotent call for as long as the server is unavailable.

        There is no limit: an outage consumes no attempt of a job, and whoever shuts the worker
        down cancels the wait.
        """
        try:
            answer = await call(*args, **kwargs)
        except Unavailable:
            self._away.add(server)
            answer = await self._again(server, call, *args, **kwargs)
        if self._away:
            self._away.discard(server)
        return answer

    async def _again(
        self, server: str, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        retrying = tenacity.AsyncRetrying(
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=self._max_pause_s),
            retry=tenacity.retry_if_exception_type(Unavailable),
        )

        async def again() -> T:
            try:
                return await call(*args, **kwargs)
            except Unavailable:
                self._away.add(server)  # another call may have been answered meanwhile
                raise

        return await retrying(again)

    @property
    def any(self) -> bool:
        """Whether work may rightly be waiting for a server."""
        return bool(self._away)

    def of(self, *servers: str) -> bool:
        """Whether one of these is away."""
        return not self._away.isdisjoint(servers)
