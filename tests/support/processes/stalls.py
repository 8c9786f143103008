"""How long the event loop was held is measured by the CPU time of its thread between two ticks.

CPU time and not the clock's: on a busy machine a loop that does nothing is late as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

_TICK_S: Final = 0.002


@dataclass
class Stalls:
    """The longest of each kind so far, in seconds."""

    cpu_s: float = 0.0
    """What the loop's own thread worked without a break."""
    wall_s: float = 0.0
    """What the loop was late; other threads and the machine count as well."""


@asynccontextmanager
async def longest_stall() -> AsyncIterator[Stalls]:
    """Watch the running loop while inside."""
    stalls = Stalls()
    ticker = asyncio.create_task(_tick(stalls), name="stalls")
    await asyncio.sleep(0)
    try:
        yield stalls
        await asyncio.sleep(2 * _TICK_S)  # what has just been done is seen by the next tick
    finally:
        ticker.cancel()


async def _tick(stalls: Stalls) -> None:
    while True:
        cpu, wall = time.thread_time(), time.perf_counter()
        await asyncio.sleep(_TICK_S)
        stalls.cpu_s = max(stalls.cpu_s, time.thread_time() - cpu)
        stalls.wall_s = max(stalls.wall_s, time.perf_counter() - wall - _TICK_S)
