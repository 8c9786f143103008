"""Repeat calls to unavailable servers, and record which servers are unavailable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

import tenacity

from dragoman_worker.backoff import LONGEST_S, backoff
from dragoman_worker.errors import Unavailable, UnknownReply
from dragoman_worker.log import logger

T = TypeVar("T")
P = ParamSpec("P")

STORE: Final = "store"
ENGINE: Final = "engine"
DEAD_LETTERS: Final = "dead letters"
RESULTS: Final = "results"

UNKNOWN_S: Final = 60.0
"""How long a call is repeated that alone gets an unknown reply."""
SETTLED_S: Final = 10.0
"""Longer than a round trip: answers are under way when an outage begins, and when it ends some
calls are answered before others."""


class Outages:
    """The servers of one worker that failed the last call to them."""

    def __init__(
        self, longest_pause_s: float = LONGEST_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._backoff = backoff(longest_s=longest_pause_s)
        self._clock = clock
        self._unavailable: set[str] = set()
        self._waiting: Counter[str] = Counter()

    async def until_available(
        self, server: str, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Repeat an idempotent call for as long as the server is unavailable.

        There is no limit: an outage consumes no attempt of a job, and a shutdown cancels the wait.
        Raises the verdict of an UnknownReply that the server gives to this call alone.
        """
        try:
            answer = await call(*args, **kwargs)
        except Unavailable as error:
            self._unavailable.add(server)
            answer = await self._outlast(server, error, call, *args, **kwargs)
        if self._unavailable:
            self._unavailable.discard(server)
        return answer

    async def _outlast(
        self,
        server: str,
        error: Unavailable,
        call: Callable[P, Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Repeat the call; log once that calls wait for the server, and once that none does."""
        self._waiting[server] += 1
        if self._waiting[server] == 1:
            _log_begin(server, error)
        try:
            answer = await self._repeat(server, error, call, *args, **kwargs)
        finally:
            self._waiting[server] -= 1
        if not self._waiting[server]:
            _log_end(server)
        return answer

    async def _repeat(
        self,
        server: str,
        error: Unavailable,
        call: Callable[P, Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        patience = Patience(self._clock)
        patience.test(error)
        retrying = tenacity.AsyncRetrying(
            wait=self._backoff, retry=tenacity.retry_if_exception_type(Unavailable)
        )

        async def attempt() -> T:
            try:
                return await call(*args, **kwargs)
            except Unavailable as again:
                self._unavailable.add(server)  # another call may have been answered meanwhile
                patience.test(again)
                raise

        return await retrying(attempt)

    @property
    def any(self) -> bool:
        """Whether any server is unavailable, so that work may wait for it."""
        return bool(self._unavailable)

    def of(self, *servers: str) -> bool:
        """Return whether one of these servers is unavailable."""
        return not self._unavailable.isdisjoint(servers)


class Patience:
    """The patience with one call that gets unknown replies.

    An outage is waited for without a limit. It is none if the server answers another script in the
    middle of it, and refuses this call still, long after that answer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._server = ""
        self._since: float | None = None
        self._others_at: float | None = None
        """When the server first answered another call, well after this one was refused."""

    def test(self, error: Unavailable) -> None:
        """Raise the error's verdict if the reply is this call's own trouble."""
        if not isinstance(error, UnknownReply):
            self._since = self._others_at = None
            return
        now = self._clock()
        if self._since is None or error.server != self._server:
            self._server, self._since, self._others_at = error.server, now, None
        answered_at = self._since if error.answered_at is None else error.answered_at
        if self._others_at is None and answered_at - self._since > SETTLED_S:
            self._others_at = answered_at
        if self._others_at is None or now - self._others_at < SETTLED_S:
            return
        if now - self._since >= UNKNOWN_S:
            raise error.verdict


def _log_begin(server: str, error: Unavailable) -> None:
    if server == STORE:
        logger().warning("redis_unavailable", error=str(error))
    elif server == ENGINE:
        logger().warning("engine_unavailable", error=str(error))
    else:
        logger().warning("topic_unavailable", topic=server, error=str(error))


def _log_end(server: str) -> None:
    if server == STORE:
        logger().info("redis_back")
    elif server == ENGINE:
        logger().info("engine_back")
    else:
        logger().info("topic_back", topic=server)
