"""Requests that are planned and wait for a permit hold their token ids; this bounds them.

A job plans its next request only while the requests of all jobs that wait have fewer tokens than
the bound. A job that runs and has none waiting plans one all the same: so every line has somebody
to be served, and a job that runs by itself cannot be kept waiting by those that it keeps out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable


class PlannedTokens:
    """Tokens planned and not yet let in, by job. Event loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[Hashable, tuple[int, int]] = {}
        """Requests of each job that wait, and their tokens."""
        self._queue: dict[Hashable, asyncio.Future[None]] = {}
        self.held = 0

    @property
    def most(self) -> int:
        """The tokens from which on no more are planned."""
        return self._most

    @property
    def free(self) -> bool:
        """Whether anybody may plan at once."""
        return self.held < self._most and not self._queue

    async def capacity(self, job: Hashable, *, runs: bool = False) -> None:
        """Wait until `job` may plan its next request. Followed by `go_on` or `enter`."""
        if self.free or (runs and job not in self._waiting):
            return
        turn = self._queue[job] = asyncio.get_running_loop().create_future()
        try:
            await turn
        except asyncio.CancelledError:
            self._queue.pop(job, None)
            self.go_on()
            raise

    def enter(self, job: Hashable, tokens: int) -> None:
        """A request of `job` was planned and waits."""
        requests, held = self._waiting.get(job, (0, 0))
        self._waiting[job] = (requests + 1, held + tokens)
        self.held += tokens
        if self._queue:
            self.go_on()

    def leave(self, job: Hashable, tokens: int) -> None:
        """It waits no longer."""
        requests, held = self._waiting[job]
        if requests > 1:
            self._waiting[job] = (requests - 1, held - tokens)
            self.held -= tokens
            if self._queue:
                self.go_on()
        else:
            self.forget(job)

    def forget(self, job: Hashable) -> None:
        """None of a job's requests waits any more. Idempotent."""
        _, held = self._waiting.pop(job, (0, 0))
        self.held -= held
        if self._queue:
            if job in self._queue:
                self._serve(job)
            self.go_on()

    def go_on(self) -> None:
        """Let the next job plan, if there is room. Also for who was let and planned nothing."""
        if self._queue and self.held < self._most:
            self._serve(next(iter(self._queue)))

    def _serve(self, job: Hashable) -> None:
        turn = self._queue.pop(job)
        if not turn.done():
            turn.set_result(None)
