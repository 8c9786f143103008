"""Unit tests of concurrent work in the order of its source, and in that of its ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman_producer.window import as_ended, in_order


async def test_results_come_in_the_order_of_the_source() -> None:
    async def work(number: int) -> int:
        for _ in range(20 - number):
            await asyncio.sleep(0)
        return number

    assert [result async for result in in_order(range(20), work, in_flight=7)] == list(range(20))


async def test_at_most_in_flight_items_are_drawn_ahead() -> None:
    drawn = yielded = 0

    async def source() -> AsyncIterator[int]:
        nonlocal drawn
        while True:
            drawn += 1
            yield drawn

    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    results = in_order(source(), work, in_flight=5)
    async for _ in results:
        yielded += 1
        assert drawn <= yielded + 5
        if yielded == 50:
            break
    await results.aclose()


async def test_an_error_is_raised_in_its_place_and_cancels_the_rest() -> None:
    tasks = asyncio.all_tasks()

    async def work(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        if number > 3:
            await asyncio.Event().wait()
        return number

    seen: list[int] = []

    async def consume() -> None:
        async for result in in_order(range(10), work, in_flight=10):
            seen.append(result)  # noqa: PERF401 - items before the error count too

    with pytest.raises(ValueError, match="three"):
        await consume()
    assert seen == [0, 1, 2]
    assert asyncio.all_tasks() == tasks


async def test_an_error_of_the_source_comes_after_its_items() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        raise OSError("disk")

    async def work(number: int) -> int:
        return number

    seen: list[int] = []

    async def consume() -> None:
        async for result in in_order(source(), work, in_flight=2):
            seen.append(result)  # noqa: PERF401 - items before the error count too

    with pytest.raises(OSError, match="disk"):
        await consume()
    assert seen == [1]


# --- as they end ----------------------------------------------------------------------------------


async def test_results_come_as_their_work_ends_and_a_slow_one_holds_up_no_other() -> None:
    released = asyncio.Event()

    async def work(number: int) -> int:
        if number == 0:
            await released.wait()
        return number

    seen: list[int] = []
    async for result in as_ended(range(1000), work, in_flight=3):
        seen.append(result)
        if len(seen) == 999:
            assert 0 not in seen
            released.set()
    assert sorted(seen) == list(range(1000))


async def test_at_most_in_flight_items_run_at_once() -> None:
    running = most = 0

    async def work(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    assert len([1 async for _ in as_ended(range(50), work, in_flight=4)]) == 50
    assert most == 4


async def test_an_error_of_the_source_is_raised_and_leaves_no_task() -> None:
    tasks = asyncio.all_tasks()

    async def source() -> AsyncIterator[int]:
        yield 1
        raise ValueError("two")

    async def forever(_: int) -> None:
        await asyncio.Event().wait()

    with pytest.raises(ValueError, match="two"):
        [each async for each in as_ended(source(), forever, in_flight=5)]
    assert asyncio.all_tasks() == tasks
