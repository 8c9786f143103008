"""Repeat calls to unavailable servers, and record which servers are unavailable."""

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
"""Longest back-off between two calls, in seconds."""


class Outages:
    """The servers of one worker that failed the last call to them."""

    def __init__(self, max_pause_s: float = MAX_PAUSE_S) -> None:
        self._max_pause_s = max_pause_s
        self._unavailable: set[str] = set()

    async def until_available(
        self, server: str, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Repeat an idempotent call for as long as the server is unavailable.

        There is no limit: an outage consumes no attempt of a job, and a shutdown cancels the wait.
        """
        try:
            answer = await call(*args, **kwargs)
        except Unavailable:
            self._unavailable.add(server)
            answer = await self._repeat(server, call, *args, **kwargs)
        if self._unavailable:
            self._unavailable.discard(server)
        return answer

    async def _repeat(
        self, server: str, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        retrying = tenacity.AsyncRetrying(
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=self._max_pause_s),
            retry=tenacity.retry_if_exception_type(Unavailable),
        )

        async def attempt() -> T:
            try:
                return await call(*args, **kwargs)
            except Unavailable:
                self._unavailable.add(server)  # another call may have been answered meanwhile
                raise

        return await retrying(attempt)

    @property
    def any(self) -> bool:
        """Whether any server is unavailable, so that work may wait for it."""
        return bool(self._unavailable)

    def of(self, *servers: str) -> bool:
        """Return whether one of these servers is unavailable."""
        return not self._unavailable.isdisjoint(servers)
