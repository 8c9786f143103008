"""Bound on the tokens of planned requests that wait for a permit and hold their token ids.

A job plans its next request only while the waiting requests of all jobs have fewer tokens than the
bound. A running job with no waiting request plans one regardless. So every job has an entry in the
queue for permits, and a job that runs by itself is not blocked by the jobs that it keeps out.

The bound may be exceeded by one request of each job that has been let plan and is still tokenising,
by those of a job whose requests are looked up in the memory together, and by one piece of each unit
whose answer failed gates: such pieces count, with their permits too, until they are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable


class PlannedTokens:
    """Tokens of planned requests without a permit by job, and of remedies. Event loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[Hashable, tuple[int, int]] = {}
        """Number and tokens of each job's waiting requests."""
        self._queue: dict[Hashable, asyncio.Future[None]] = {}
        """Jobs that wait for capacity, first come, first served."""
        self.held = 0

    @property
    def most(self) -> int:
        """Number of tokens from which no further request is planned."""
        return self._most

    @property
    def free(self) -> bool:
        """Whether a job may plan a request at once."""
        return self.held < self._most and not self._queue

    async def wait_for_capacity(self, job: Hashable, *, runs: bool = False) -> None:
        """Wait until `job` may plan its next request; call `enter` or `admit_next` afterwards."""
        if self.free or (runs and job not in self._waiting):
            return
        admitted = self._queue[job] = asyncio.get_running_loop().create_future()
        try:
            await admitted
        except asyncio.CancelledError:
            self._queue.pop(job, None)
            self.admit_next()
            raise

    def enter(self, job: Hashable, tokens: int) -> None:
        """Count a planned request of `job` that waits for a permit."""
        requests, held = self._waiting.get(job, (0, 0))
        self._waiting[job] = (requests + 1, held + tokens)
        self.held += tokens
        if self._queue:
            self.admit_next()

    def leave(self, job: Hashable, tokens: int) -> None:
        """Remove a request of `job` that no longer waits from the count."""
        requests, held = self._waiting[job]
        if requests > 1:
            self._waiting[job] = (requests - 1, held - tokens)
            self.held -= tokens
            if self._queue:
                self.admit_next()
        else:
            self.forget(job)

    def forget(self, job: Hashable) -> None:
        """Remove all requests of a job from the count. Idempotent."""
        _, held = self._waiting.pop(job, (0, 0))
        self.held -= held
        if self._queue:
            if job in self._queue:
                self._admit(job)
            self.admit_next()

    def admit_next(self) -> None:
        """Let the next job plan, if there is capacity.

        Also called for a job that was admitted and planned nothing.
        """
        if self._queue and self.held < self._most:
            self._admit(next(iter(self._queue)))

    def _admit(self, job: Hashable) -> None:
        admitted = self._queue.pop(job)
        if not admitted.done():
            admitted.set_result(None)
