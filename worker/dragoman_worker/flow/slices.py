"""Time slices for the CPU work per record, so that the event loop is never blocked for long.

Small pieces run on the event loop, a few in each of its rounds. Large pieces run in one thread:
their slow parts (tokenising, splitting into sentences) release the GIL, and the rest is Python,
which yields the GIL every few milliseconds. With a tokenizer, small requests are planned in a
second thread, which large pieces do not hold up. docs/adr/0014 has the measurements.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

LARGE: Final = 2_000
"""Characters above which a piece runs in the thread: some milliseconds of tokenising."""

_ROUND_S: Final = 0.01
"""CPU time per round of the loop, in seconds; further pieces wait for the next round.

CPU time, because on a busy machine the clock advances while the loop does not run. It is read as
rarely as possible, by a system call: one per round took 5 % of the time of jobs without a model.
"""
_REUSE_CPU_TIME_S: Final = 0.001
"""How long a reading of CPU time serves the rounds that begin; they may end early by as much."""
_CHECK_EVERY: Final = 4
"""Pieces per reading of the clock, which costs a tenth of a small piece."""
_MOST_WOKEN: Final = 64
"""Waiting pieces that are woken for one round; those that find it spent wait for the next."""


class Slices:
    """The time slices of one event loop, and the threads for other pieces."""

    def __init__(self) -> None:
        self._began = False
        """Whether the first piece of this round has begun."""
        self._cpu = 0.0
        """CPU time of the loop's thread when the round began, or up to _REUSE_CPU_TIME_S before."""
        self._cpu_read_at = -math.inf
        """Clock time of that reading."""
        self._ask_at = math.inf
        """Clock time before which the round cannot be spent, because CPU time is no faster."""
        self._pieces = 0
        self._spent = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._rewaiting: list[asyncio.Future[None]] = []
        """Pieces that were woken and found their round spent: the first of the next round."""
        self._woken = _MOST_WOKEN
        """Pieces to wake for the next round: halved after a round that could not run them all."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="planning")
        self._second_thread = ThreadPoolExecutor(1, thread_name_prefix="planning-small")

    def may_run_now(self) -> bool:
        """Whether a small piece may run on the loop at once.

        True even if others wait: they come first in each round, and a job that has begun goes on
        with its next piece instead of waiting again.
        """
        if not self._began:
            self._begin_round()
            return True
        if self._spent:
            return False
        self._pieces += 1
        if self._pieces % _CHECK_EVERY == 0 and (now := time.perf_counter()) > self._ask_at:
            left = self._cpu + _ROUND_S - time.thread_time()
            self._spent, self._ask_at = left < 0, now + left
        return not self._spent

    async def wait(self) -> None:
        """Wait until a small piece may run on the loop, in one of the next rounds."""
        loop, enqueue = asyncio.get_running_loop(), self._waiting.append
        spent = True
        while spent:
            woken: asyncio.Future[None] = loop.create_future()
            enqueue(woken)
            await woken
            spent = not self.may_run_now()
            enqueue = self._rewaiting.append

    async def in_thread(self, size: int, work: Callable[[], T]) -> T:
        """Do `work` in the thread for its size."""
        thread = self._thread if size > LARGE else self._second_thread
        return await asyncio.get_running_loop().run_in_executor(thread, work)

    def close(self) -> None:
        """Stop the threads after their current pieces."""
        for thread in (self._thread, self._second_thread):
            thread.shutdown(wait=False, cancel_futures=True)

    def _begin_round(self) -> None:
        self._began, self._spent, now = True, False, time.perf_counter()
        if now - self._cpu_read_at > _REUSE_CPU_TIME_S:
            self._cpu, self._cpu_read_at = time.thread_time(), now
        self._ask_at = self._cpu_read_at + _ROUND_S
        asyncio.get_running_loop().call_soon(self._next_round)

    def _next_round(self) -> None:
        self._began = False
        if not self._waiting and not self._rewaiting:
            return
        fewer, more = max(1, self._woken // 2), min(2 * self._woken, _MOST_WOKEN)
        self._woken = fewer if self._rewaiting else more
        self._waiting.extendleft(reversed(self._rewaiting))
        self._rewaiting.clear()
        for _ in range(min(self._woken, len(self._waiting))):
            woken = self._waiting.popleft()
            if not woken.done():
                woken.set_result(None)
        self._begin_round()
