"""Turns for planning: when a job may plan its next request, and where that runs.

A turn waits for what it needs, in this order:

1. *capacity*, for a turn of a job: requests that are planned and wait for a permit hold token ids,
   and their tokens are bounded over all jobs;
2. a *slice* of the event loop (flow/slices.py), unless its work runs in a thread;
3. one of four *seats*, for the turns that open a record with a tokenizer: all records that are
   being opened are suspects after a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from dragoman_worker.flow.slices import LARGE, Slices

T = TypeVar("T")

_OPENED_AT_ONCE: Final = 4
"""Records that wait for the second thread or are in it: the fewer, the fewer suspects after a
crash, and enough that the thread never waits."""


class Opens(Protocol):
    """A record that is opened: its job is not claimed yet."""

    @property
    def suspect(self) -> bool:
        """Whether it needs no seat: it waits for more than that, and would block others."""
        ...


class Planning:
    """The turns of one event loop, and the count of the requests that they plan."""

    def __init__(self, most_tokens: int, *, tokenises: bool = False) -> None:
        """Bound the tokens of planned requests; with `tokenises`, requests are planned in threads.

        Planning with a tokenizer takes some 0.2 ms for a sentence, ten times what a thread costs
        the loop; without one it takes less than a thread costs.
        """
        self.tokens = PlannedTokens(most_tokens)
        self.slices = Slices()
        self.tokenises = tokenises
        self.seats = asyncio.Semaphore(_OPENED_AT_ONCE) if tokenises else None

    def turn(self, size: int, job: Hashable = None, *, opens: Opens | None = None) -> Turn:
        """Return the turn for work that costs as much as reading `size` characters.

        A turn of a `job` plans requests, and first waits for capacity; without one it does not.
        `opens` is the record that is opened in it. A job that has been opened, and has no waiting
        request, needs no capacity.
        """
        return Turn(self, size, job, opens)

    def at_once(self, size: int) -> bool:
        """Whether a request of `size` characters may be planned on the loop now, without a turn."""
        on_loop = size <= LARGE and not self.tokenises
        return on_loop and self.tokens.free and self.slices.may_run_now()

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Do work that plans nothing: in a slice of the loop, or in a thread if it is large."""
        if size > LARGE:
            return await self.slices.in_thread(size, work)
        if not self.slices.may_run_now():
            await self.slices.wait()
        return work()

    def close(self) -> None:
        """Stop the threads after their current pieces."""
        self.slices.close()


class Turn:
    """One turn, as an asynchronous context: entered once it may begin."""

    __slots__ = ("_job", "_opens", "_planning", "_seat", "_size", "_slice")

    def __init__(self, planning: Planning, size: int, job: Hashable, opens: Opens | None) -> None:
        self._planning = planning
        self._size = size
        self._job = job
        self._opens = opens
        self._seat: asyncio.Semaphore | None = None
        """Where the turn holds a seat."""
        self._slice = True
        """Whether the turn has a slice for its next piece on the loop."""

    async def __aenter__(self) -> Self:
        planning, slices = self._planning, self._planning.slices
        try:
            if self._job is not None and not planning.tokens.free:
                await planning.tokens.wait_for_capacity(self._job, runs=self._opens is None)
            on_loop = self._job is None or self._opens is not None or not planning.tokenises
            if on_loop and self._size <= LARGE and not slices.may_run_now():
                await slices.wait()
            if planning.seats is not None and self._opens is not None and not self._opens.suspect:
                await self._wait_for_seat(planning.seats)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._job is not None or self._seat is not None:
            self._leave()

    async def run(self, work: Callable[[], T]) -> T:
        """Do work of the turn's size: in a thread if it is large, else at once."""
        if self._size > LARGE:
            return await self._planning.slices.in_thread(self._size, work)
        return work()

    async def plan(self, size: int, step: Callable[[], T]) -> T:
        """Plan a request of `size` characters: the first at once, the next ones in slices."""
        slices = self._planning.slices
        if self._planning.tokenises or size > LARGE:
            return await slices.in_thread(size, step)
        if not self._slice and not slices.may_run_now():
            await slices.wait()
        self._slice = False
        return step()

    def goes_on(self, size: int) -> bool:
        """Whether another request of `size` characters may be planned now, without waiting."""
        self._slice = self._planning.at_once(size)
        return self._slice or (self._planning.tokenises and self._planning.tokens.free)

    async def _wait_for_seat(self, seats: asyncio.Semaphore) -> None:
        await seats.acquire()
        self._seat = seats
        tokens = self._planning.tokens
        if self._job is not None and not tokens.free:  # others planned meanwhile
            tokens.wake_next()
            await tokens.wait_for_capacity(self._job)

    def _leave(self) -> None:
        if self._seat is not None:
            self._seat.release()
        if self._job is not None:
            self._planning.tokens.wake_next()


class PlannedTokens:
    """Tokens of planned requests without a permit by job, and of remedies. Event loop only.

    A job plans its next request only while the waiting requests of all jobs have fewer tokens than
    the bound. A running job with no waiting request plans one regardless. So every job has an entry
    in the queue for permits, and a job that runs by itself is not blocked by those it keeps out.

    The bound may be exceeded by one request of each job that has been let plan and is tokenising,
    by those of a job whose requests are looked up in the memory together, and by one piece of each
    unit whose answer failed gates: such pieces count, with their permits too, until answered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[Hashable, tuple[int, int]] = {}
        """Number and tokens of each job's waiting requests."""
        self._queue: dict[Hashable, asyncio.Future[None]] = {}
        """Jobs that wait for capacity, first come, first served."""
        self.held = 0

    @property
    def free(self) -> bool:
        """Whether a job may plan a request at once."""
        return self.held < self._most and not self._queue

    async def wait_for_capacity(self, job: Hashable, *, runs: bool = False) -> None:
        """Wait until `job` may plan its next request; followed by `wake_next`."""
        if self.free or (runs and job not in self._waiting):
            return
        may_plan = self._queue[job] = asyncio.get_running_loop().create_future()
        try:
            await may_plan
        except asyncio.CancelledError:
            self._queue.pop(job, None)
            raise

    def enter(self, job: Hashable, tokens: int) -> None:
        """Count a planned request of `job` that waits for a permit."""
        requests, held = self._waiting.get(job, (0, 0))
        self._waiting[job] = (requests + 1, held + tokens)
        self.held += tokens
        if self._queue:
            self.wake_next()

    def leave(self, job: Hashable, tokens: int) -> None:
        """Remove a request of `job` that no longer waits from the count."""
        requests, held = self._waiting[job]
        if requests > 1:
            self._waiting[job] = (requests - 1, held - tokens)
            self.held -= tokens
            if self._queue:
                self.wake_next()
        else:
            self.forget(job)

    def forget(self, job: Hashable) -> None:
        """Remove all requests of a job from the count. Idempotent."""
        _, held = self._waiting.pop(job, (0, 0))
        self.held -= held
        if self._queue:
            if job in self._queue:
                self._wake(job)
            self.wake_next()

    def wake_next(self) -> None:
        """Let the next job plan, if there is capacity: a turn is over, or its job waits again."""
        if self._queue and self.held < self._most:
            self._wake(next(iter(self._queue)))

    def _wake(self, job: Hashable) -> None:
        may_plan = self._queue.pop(job)
        if not may_plan.done():
            may_plan.set_result(None)
