"""Slices of the event loop's time, by a clock and a CPU time that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dragoman_worker.flow import slices
from dragoman_worker.flow.slices import Slices


@dataclass
class Clocks:
    """Stand-in for the module `time`."""

    now: float = 100.0
    cpu: float = 1.0
    cpu_reads: int = 0
    """How often the CPU time was read."""

    def perf_counter(self) -> float:
        return self.now

    def thread_time(self) -> float:
        self.cpu_reads += 1
        return self.cpu

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.cpu += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(slices, "time", clocks)
    return clocks


@pytest.fixture
def loop_slices() -> Iterator[Slices]:
    made = Slices()
    yield made
    made.close()


async def next_round() -> None:
    await asyncio.sleep(0)


def pieces_until_spent(loop_slices: Slices, clocks: Clocks, each_s: float, most: int) -> int:
    """Return how many pieces of `each_s` seconds of CPU time may run in this round."""
    for number in range(most):
        if not loop_slices.may_run_now():
            return number
        clocks.work(each_s)
    return most


async def test_round_ends_once_it_has_taken_its_cpu_time(
    loop_slices: Slices, clocks: Clocks
) -> None:
    ran = pieces_until_spent(loop_slices, clocks, each_s=0.001, most=100)
    assert 10 <= ran <= 14  # 10 ms, looked at before every fourth piece


async def test_next_round_begins_with_all_its_time(loop_slices: Slices, clocks: Clocks) -> None:
    pieces_until_spent(loop_slices, clocks, each_s=0.001, most=100)
    await next_round()
    assert 10 <= pieces_until_spent(loop_slices, clocks, each_s=0.001, most=100) <= 14


async def test_round_goes_on_while_only_the_clock_advances(
    loop_slices: Slices, clocks: Clocks
) -> None:
    for _ in range(100):
        assert loop_slices.may_run_now()
        clocks.now += 1.0


async def test_spent_round_stays_spent_without_another_reading(
    loop_slices: Slices, clocks: Clocks
) -> None:
    pieces_until_spent(loop_slices, clocks, each_s=0.001, most=100)
    before = clocks.cpu_reads
    assert not any(loop_slices.may_run_now() for _ in range(100))
    assert clocks.cpu_reads == before


async def test_cpu_time_is_not_read_before_the_rest_of_a_round_has_passed(
    loop_slices: Slices, clocks: Clocks
) -> None:
    for _ in range(100):
        assert loop_slices.may_run_now()
        clocks.now += 0.001  # 100 ms in all, in which the loop's thread hardly runs
        clocks.cpu += 0.00001
    assert clocks.cpu_reads <= 1 + 100 // 9


async def test_short_rounds_share_one_reading_and_take_no_more_than_their_time(
    loop_slices: Slices, clocks: Clocks
) -> None:
    for _ in range(10):
        assert loop_slices.may_run_now()
        clocks.work(0.00009)
        await next_round()
    assert clocks.cpu_reads == 1
    assert pieces_until_spent(loop_slices, clocks, each_s=0.001, most=100) <= 14
