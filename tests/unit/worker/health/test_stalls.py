"""Tests that every stall of the event loop is measured, at any point between two reads."""

from __future__ import annotations

import asyncio
import time

from dragoman_worker.health.sampler import TICK_S, StallClock


async def _stalled(seconds: float) -> StallClock:
    clock = StallClock()
    clock.start()
    await asyncio.sleep(2 * TICK_S)
    time.sleep(seconds)  # noqa: ASYNC251  this is the stall
    await asyncio.sleep(5 * TICK_S)  # the stall is over long before the read
    return clock


async def test_a_stall_between_two_reads_is_returned_by_the_next_two() -> None:
    clock = await _stalled(0.3)
    assert clock.read().late_s >= 0.3 - TICK_S
    assert clock.read().late_s >= 0.3 - TICK_S
    clock.stop()


async def test_a_stall_is_forgotten_after_two_reads() -> None:
    clock = await _stalled(0.3)
    clock.stop()
    for _ in range(2):
        clock.read()
    assert clock.read().late_s == 0.0


async def test_blocking_without_computing_is_no_cpu_of_the_loop() -> None:
    clock = await _stalled(0.3)
    clock.stop()
    assert clock.read().cpu_s < 0.25


async def test_a_computing_loop_reports_its_cpu() -> None:
    clock = StallClock()
    clock.start()
    began = time.thread_time()
    while time.thread_time() - began < 0.1:
        pass
    await asyncio.sleep(2 * TICK_S)
    clock.stop()
    assert clock.read().cpu_s >= 0.1
