"""Unit tests of concurrent work in the order of its source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman_producer.window import in_order


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
    await results.aclose()  # type: ignore[attr-defined]


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
