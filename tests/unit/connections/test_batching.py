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


async def test_only_flushes_with_a_request_of_concern_are_waited_for() -> None:
    gates = {number: asyncio.Event() for number in range(4)}

    async def flush(numbers: Sequence[int]) -> list[int | Exception]:
        await gates[numbers[0]].wait()
        if 1 in numbers:
            raise ValueError("lost")
        return list(numbers)

    batcher = Batcher[int, int](flush, at_most=1, name="b", flushes=2)
    calls = [asyncio.create_task(batcher.ask(number)) for number in (0, 1)]
    for _ in range(5):
        await asyncio.sleep(0)  # both flushes are under way
    calls[1].cancel()
    await asyncio.wait_for(batcher.caught_up(lambda number: number == 2), 5)
    waiting = asyncio.create_task(batcher.caught_up(lambda number: number == 1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    gates[1].set()
    await asyncio.wait_for(waiting, 5)
    assert not calls[0].done()
    gates[0].set()
    assert await calls[0] == 0
    await asyncio.wait_for(batcher.caught_up(lambda _: True), 5)
    await batcher.close()
