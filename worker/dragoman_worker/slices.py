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

_ROUND_S: Final = 0.005
"""After this much of a round of the loop the next pieces wait for the next round."""
_A_ROUND: Final = 4
"""Pieces that waited and run in one round."""


class Slices:
    """The turns of one event loop, and the thread beside it."""

    def __init__(self) -> None:
        self._began: float | None = None
        """When the first piece of this round began."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="planning")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Do `work`, which costs what `size` characters cost, without holding the loop."""
        if size > LARGE:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        if self._began is not None and (
            self._waiting or time.perf_counter() - self._began > _ROUND_S
        ):
            await self._turn()
        elif self._began is None:
            self._began = time.perf_counter()
            asyncio.get_running_loop().call_soon(self._next_round)
        return work()

    def close(self) -> None:
        """Let the thread end after what it does now."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._began = time.perf_counter() if self._waiting else None
        for _ in range(min(_A_ROUND, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._began is not None:
            asyncio.get_running_loop().call_soon(self._next_round)
