"""Stalls of the event loop, measured by the CPU time of its thread between two ticks.

Not by the clock: on a busy machine an idle loop is late as well.
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
    """The longest stall of each kind so far, in seconds."""

    cpu_s: float = 0.0
    """CPU time of the loop's thread between two ticks."""
    wall_s: float = 0.0
    """Delay of a tick, which other threads and other processes cause as well."""


@asynccontextmanager
async def longest_stall() -> AsyncIterator[Stalls]:
    """Measure the running loop inside the context."""
    stalls = Stalls()
    ticker = asyncio.create_task(_tick(stalls), name="stalls")
    await asyncio.sleep(0)
    try:
        yield stalls
        await asyncio.sleep(2 * _TICK_S)  # the next tick measures the last work
    finally:
        ticker.cancel()


async def _tick(stalls: Stalls) -> None:
    while True:
        cpu, wall = time.thread_time(), time.perf_counter()
        await asyncio.sleep(_TICK_S)
        stalls.cpu_s = max(stalls.cpu_s, time.thread_time() - cpu)
        stalls.wall_s = max(stalls.wall_s, time.perf_counter() - wall - _TICK_S)
