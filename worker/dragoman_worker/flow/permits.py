"""Permits to enter the engine: items of all jobs in rotation, as many as keep the engine full.

Items and their tokens are bounded at once. Each job has its own queue, and the queues are served in
rotation: a job of 512 items neither blocks other jobs nor floods the engine. Priority classes, the
topics, are served by weight and by tokens, because tokens measure the engine's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from dragoman_worker.flow.fair_queue import FairQueue, Queued
from dragoman_worker.flow.quarantine import QuarantineRounds


class Draining(Exception):
    """No new job may enter the engine: the worker is stopping."""


class Permit(NamedTuple):
    """The right of one item to be in the engine. Releasing it twice does no harm."""

    job: str
    tokens: int


@dataclass(slots=True, eq=False)
class _Waiter:
    tokens: int
    starts_job: bool
    granted: asyncio.Future[Permit]


class Permits:
    """Fair two-dimensional semaphore for engine slots. Event loop only; no I/O."""

    def __init__(
        self, *, items: int, tokens: int, weights: Mapping[str, int] | None = None
    ) -> None:
        """Bound the engine by `items` and `tokens`; a class missing from `weights` weighs 1."""
        self._items = items
        self._tokens = tokens
        self._held_tokens = 0
        self._granted = 0
        self._answered = 0
        self._held: dict[int, int] = {}
        self._queue: FairQueue[_Waiter] = FairQueue(weights)
        self._quarantine = QuarantineRounds()
        self._between = 0
        """Permits that may still be granted before the next round of the quarantine."""
        self._draining = False
        self._closed = False

    @property
    def items(self) -> int:
        """Bound on the items in the engine."""
        return self._items

    @property
    def tokens(self) -> int:
        """Bound on the tokens of the items in the engine."""
        return self._tokens

    @property
    def held_items(self) -> int:
        """Items in the engine now."""
        return len(self._held)

    @property
    def oldest(self) -> int | None:
        """Number of the permit that has been held for longest; None if none is held."""
        return next(iter(self._held.values()), None)

    @property
    def held_tokens(self) -> int:
        """Tokens reserved by the items in the engine, prompt and expected output together."""
        return self._held_tokens

    @property
    def answered(self) -> int:
        """Items that have left the engine with an output so far."""
        return self._answered

    @property
    def tokens_hold_back(self) -> bool:
        """Whether items wait only because their tokens do not fit."""
        free = len(self._held) < self._items and not self.quarantined
        return free and bool(self._queue) and not self._closed

    @property
    def quarantined(self) -> int:
        """Suspects in quarantine, waiting and running.

        While there are any, the engine may be kept empty on purpose.
        """
        return self._quarantine.waiting + self._quarantine.inside

    @property
    def waiting(self) -> int:
        """Items waiting for a permit."""
        return len(self._queue)

    def waiting_of(self, priority: str) -> int:
        """Return the items of one priority class that wait for a permit."""
        return self._queue.waiting(priority)

    def resize(self, *, items: int, tokens: int) -> None:
        """Change the bounds; items in the engine keep their permits."""
        self._items = items
        self._tokens = tokens
        self._grant()

    async def acquire(
        self,
        job: str,
        tokens: int,
        *,
        priority: str = "",
        starts_job: bool = False,
        first: bool = False,
    ) -> Permit:
        """Wait for a permit for one item of `job`, the `first` to get one among its items or last.

        With `starts_job` raises Draining once the worker drains: no further job may start.
        """
        if starts_job and self._draining:
            raise Draining
        if not self._queue and self._fits(job, tokens):
            return self._issue(job, tokens)
        waiter = _Waiter(tokens, starts_job, asyncio.get_running_loop().create_future())
        self._queue.join(priority, job, waiter, first=first)
        self._grant()
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            self._withdraw(priority, job, waiter)
            raise

    def release(self, permit: Permit, *, answered: bool = False) -> None:
        """Release a permit and grant the next ones. Idempotent while the caller keeps `permit`.

        `answered`: the engine returned an output for the item.
        """
        if self._held.pop(id(permit), None) is not None:
            self._answered += answered
            self._held_tokens -= permit.tokens
            self._grant()

    @asynccontextmanager
    async def quarantine(self, job: str, *, by_itself: bool) -> AsyncIterator[None]:
        """Admit only this suspect's cohort to the engine, or only `job` if it runs `by_itself`.

        Between two rounds, waiting items of other jobs enter, at most one full engine of them.
        Otherwise the hundreds of suspects that a crash of a busy worker makes would block all other
        jobs for long. Raises Draining if the worker drains before the suspect is admitted.
        """
        if self._draining:
            raise Draining
        member = self._quarantine.join(job, by_itself=by_itself)
        self._grant()
        try:
            await member.admitted
            yield
        finally:
            if self._quarantine.leave(member):
                self._between = min(self._items, len(self._queue))
            self._grant()

    def let_finish(self, jobs: Iterable[str]) -> None:
        """Let running `jobs` go on beside the admitted suspect, which waits for them to finish."""
        self._quarantine.let_finish(jobs)
        self._grant()

    def in_quarantine(self, job: str) -> bool:
        """Whether the job is in the engine in a round of the quarantine."""
        return self._quarantine.holds(job)

    def drain(self) -> None:
        """Reject jobs that have not started; jobs that have started may finish their items."""
        self._draining = True
        for queued in self._queue.all():
            waiter = queued.entry
            if waiter.starts_job:
                self._queue.leave(queued.priority, queued.job, waiter)
                if not waiter.granted.done():
                    waiter.granted.set_exception(Draining())
        self._quarantine.reject_waiting(Draining)
        self._grant()  # a rejected waiter may have been ahead of one that fits

    def close(self) -> None:
        """Grant no further permit, not even to jobs that have started: the engine is dead.

        A job that entered now would fail at once and look like one of those that killed the engine.
        """
        self._closed = True
        self.drain()

    @property
    def closed(self) -> bool:
        """Whether no further permit is granted."""
        return self._closed

    def _fits(self, job: str, tokens: int) -> bool:
        if self._closed:
            return False
        if self._quarantine.inside:
            if job not in self._quarantine.jobs:
                return False
        elif self._quarantine.waiting and not self._between:
            return False  # let the engine run empty for the suspects
        if len(self._held) == 0:
            return True  # whatever its size: it would never fit otherwise
        return len(self._held) < self._items and self._held_tokens + tokens <= self._tokens

    def _issue(self, job: str, tokens: int) -> Permit:
        self._held_tokens += tokens
        permit = Permit(job, tokens)
        self._granted += 1
        self._held[id(permit)] = self._granted
        self._between = max(0, self._between - 1)
        return permit

    def _grant(self) -> None:
        if not self._queue and not self._quarantine.waiting:
            return
        self._admit_suspects()
        while len(self._held) < self._items and (queued := self._next()) is not None:
            waiter = queued.entry
            gone = waiter.granted.done()
            self._queue.serve(queued, 0 if gone else waiter.tokens)
            if not gone:
                waiter.granted.set_result(self._issue(queued.job, waiter.tokens))

    def _admit_suspects(self) -> None:
        if self._closed:
            return
        if len(self._held) == 0 and not (self._between and self._queue):
            self._quarantine.begin_round()
        self._quarantine.fill_cohort()

    def _next(self) -> Queued[_Waiter] | None:
        if self._quarantine.inside:
            queued = self._queue.first(among=self._quarantine.jobs)
        elif self._quarantine.waiting and not self._between:
            queued = None
        else:
            queued = self._queue.first()
        if queued is None or not self._fits(queued.job, queued.entry.tokens):
            return None
        return queued

    def _withdraw(self, priority: str, job: str, waiter: _Waiter) -> None:
        if waiter.granted.done() and not waiter.granted.cancelled():
            if waiter.granted.exception() is None:
                self.release(waiter.granted.result())
            return
        self._queue.leave(priority, job, waiter)
        self._grant()
