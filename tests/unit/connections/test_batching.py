"""Requests share flushes, and a failed flush fails only its own requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dragoman_connections.batching import Batcher


async def test_concurrent_requests_share_a_flush_and_a_failed_flush_fails_only_its_own() -> None:
    batches: list[list[int]] = []

    async def flush(numbers: Sequence[int]) -> list[int | Exception]:
        batches.append(list(numbers))
        await asyncio.sleep(0)
        if 13 in numbers:
            raise ValueError("unlucky")
        return [number * 2 for number in numbers]

    batcher = Batcher[int, int](flush, at_most=10, name="b")
    assert await asyncio.gather(*map(batcher.ask, range(10))) == [n * 2 for n in range(10)]
    answers = await asyncio.gather(*map(batcher.ask, range(10, 30)), return_exceptions=True)
    assert all(isinstance(answer, ValueError) for answer in answers[:10])
    assert answers[10:] == [n * 2 for n in range(20, 30)]
    assert [len(batch) for batch in batches] == [10, 10, 10]
    await batcher.close()


async def test_an_idle_batcher_holds_no_task_and_serves_again_after_a_close() -> None:
    async def flush(numbers: Sequence[int]) -> list[int | Exception]:
        return list(numbers)

    batcher = Batcher[int, int](flush, at_most=2, name="b", flushes=2)
    before = asyncio.all_tasks()
    for _ in range(2):
        assert await asyncio.gather(*map(batcher.ask, range(7))) == list(range(7))
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before
        await batcher.close()


async def test_a_close_before_the_first_step_cancels_the_caller() -> None:
    async def flush(numbers: Sequence[int]) -> list[int | Exception]:
        return list(numbers)

    batcher = Batcher[int, int](flush, at_most=2, name="b")
    asking = asyncio.ensure_future(batcher.ask(1))
    await asyncio.sleep(0)  # the request is queued, its flush has not run
    await batcher.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await batcher.ask(2) == 2
    await batcher.close()


async def test_no_more_flushes_run_at_once_than_allowed() -> None:
    running, most = 0, 0

    async def flush(numbers: Sequence[int]) -> list[int | Exception]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return list(numbers)

    batcher = Batcher[int, int](flush, at_most=3, name="b", flushes=2)
    assert await asyncio.gather(*map(batcher.ask, range(50))) == list(range(50))
    assert most == 2
    await batcher.close()
