"""What records cost is done in slices, so that the event loop is never held for long.

Small pieces run on the loop, a few in each of its rounds. Large ones run in one thread: what takes
long in them (tokenising, splitting into sentences) lets the loop run beside it, and the rest is
Python, which gives way every few milliseconds. docs/adr/0014 has the measurements.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

LARGE: Final = 2_000
"""Characters from which on a piece runs in the thread: some milliseconds of tokenising."""

_ROUND_S: Final = 0.01
"""After this much CPU time of a round of the loop the next pieces wait for the next round. CPU
time, because on a busy machine the clock goes on while nothing is done; but the clock is looked at
first, because reading CPU time is a system call."""
_LOOK_AFTER: Final = 4
_MOST_WOKEN: Final = 64
"""Pieces that waited and are woken for one round; those that find it spent wait once more."""


class Slices:
    """The turns of one event loop, and the thread beside it."""

    def __init__(self) -> None:
        self._began: float | None = None
        """When the first piece of this round began, by the clock."""
        self._cpu = 0.0
        """The thread's CPU time then."""
        self._pieces = 0
        self._spent = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._again: list[asyncio.Future[None]] = []
        """Those that found their round spent: the first ones of the next."""
        self._woken = _MOST_WOKEN
        """How many are woken for the next round: half as many after one that did not suffice."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="planning")

    def now(self, size: int) -> bool:
        """Whether a piece that costs what `size` characters cost may run on the loop at once.

        Also before those that wait: they come first in each round, and a job that has begun goes
        on with its next piece instead of waiting again.
        """
        if size > LARGE:
            return False
        if self._began is None:
            self._begin_round()
            return True
        self._pieces += 1
        if self._pieces % _LOOK_AFTER == 0:  # the clock costs as much as a small piece's tenth
            self._spent = (
                time.perf_counter() - self._began > _ROUND_S
                and time.thread_time() - self._cpu > _ROUND_S
            )
        return not self._spent

    async def turn(self, size: int) -> None:
        """Wait until a piece may run: for the loop's next rounds, and not at all if it is large."""
        if size <= LARGE and not self.now(size):
            await self._turn()

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Do `work`: in the thread if it is large, else at once."""
        if size > LARGE:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        return work()

    def close(self) -> None:
        """Let the thread end after what it does now."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _turn(self) -> None:
        loop, stand = asyncio.get_running_loop(), self._waiting.append
        spent = True
        while spent:
            turn: asyncio.Future[None] = loop.create_future()
            stand(turn)
            await turn
            spent = not self.now(0)
            stand = self._again.append

    def _begin_round(self) -> None:
        self._spent = False
        self._began, self._cpu = time.perf_counter(), time.thread_time()
        asyncio.get_running_loop().call_soon(self._next_round)

    def _next_round(self) -> None:
        self._began = None
        if not self._waiting and not self._again:
            return
        self._woken = max(1, self._woken // 2) if self._again else min(2 * self._woken, _MOST_WOKEN)
        self._waiting.extendleft(reversed(self._again))
        self._again.clear()
        for _ in range(min(self._woken, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        self._begin_round()
