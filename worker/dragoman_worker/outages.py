"""Is a server away? Told by the last call to it, for watchdogs that must not mistake it for us."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from dragoman_schemas.results import TranslationResult
from dragoman_worker.errors import Unavailable
from dragoman_worker.outcome import Take
from dragoman_worker.ports import (
    CancelNotice,
    DeadLetters,
    Delivery,
    Results,
    Store,
    TakeReply,
    TakeRequest,
)

T = TypeVar("T")


STORE: Final = "store"
DEAD_LETTERS: Final = "dead letters"
RESULTS: Final = "results"


class Outages:
    """Which servers did not answer the last time. One for all wrapped ports of a worker."""

    def __init__(self) -> None:
        self._away: set[str] = set()

    async def watch(self, server: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call and remember whether the server was there."""
        try:
            answer = await call()
        except Unavailable:
            self._away.add(server)
            raise
        self._away.discard(server)
        return answer

    @property
    def any(self) -> bool:
        """Whether work may rightly be waiting for a server."""
        return bool(self._away)

    def of(self, *servers: str) -> bool:
        """Whether one of these is away."""
        return not self._away.isdisjoint(servers)


class WatchedStore(Store):
    """A store whose outages are remembered."""

    def __init__(self, store: Store, outages: Outages) -> None:
        self._store = store
        self._outages = outages

    async def take(self, request: TakeRequest) -> TakeReply:
        return await self._outages.watch(STORE, lambda: self._store.take(request))

    async def release(self, take: Take) -> None:
        await self._outages.watch(STORE, lambda: self._store.release(take))

    async def finish(self, take: Take, result: TranslationResult) -> TranslationResult | None:
        return await self._outages.watch(STORE, lambda: self._store.finish(take, result))

    async def confirm(self, job_id: str) -> None:
        await self._outages.watch(STORE, lambda: self._store.confirm(job_id))

    async def announce(self, result: TranslationResult) -> None:
        await self._outages.watch(STORE, lambda: self._store.announce(result))

    def cancels(self) -> AsyncIterator[CancelNotice]:
        return self._store.cancels()


class WatchedDeadLetters(DeadLetters):
    """Dead letters whose outages are remembered."""

    def __init__(self, letters: DeadLetters, outages: Outages) -> None:
        self._letters = letters
        self._outages = outages

    async def publish(
        self,
        delivery: Delivery,
        *,
        code: str,
        message: str,
        job_id: str | None,
        attempts: int,
        deliveries: int,
        first_seen: str | None,
    ) -> None:
        await self._outages.watch(
            DEAD_LETTERS,
            lambda: self._letters.publish(
                delivery,
                code=code,
                message=message,
                job_id=job_id,
                attempts=attempts,
                deliveries=deliveries,
                first_seen=first_seen,
            ),
        )


class WatchedResults(Results):
    """Published results whose outages are remembered."""

    def __init__(self, results: Results, outages: Outages) -> None:
        self._results = results
        self._outages = outages

    async def publish(self, result: TranslationResult) -> None:
        await self._outages.watch(RESULTS, lambda: self._results.publish(result))
