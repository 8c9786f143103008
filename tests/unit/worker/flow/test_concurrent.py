"""A time limit by a clock that the test sets, and by the loop's own timer."""

from __future__ import annotations

import asyncio

import pytest

from dragoman_worker.flow.concurrent import TimeLimit

FAR_S = 3600.0
"""A limit that no test reaches by the real clock."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def forever() -> None:
    await asyncio.Event().wait()


async def begun(limit: TimeLimit, count: int) -> None:
    await asyncio.sleep(0)  # tasks begin in the order in which they were created
    assert len(limit) == count


async def test_result_and_error_pass_through() -> None:
    limit = TimeLimit(FAR_S)

    async def fail() -> None:
        raise ValueError("no")

    assert await limit.of(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="no"):
        await limit.of(fail())
    assert len(limit) == 0


async def test_timer_cancels_what_takes_longer_than_the_limit() -> None:
    limit = TimeLimit(0.001)
    for _ in range(2):  # the timer is set again
        with pytest.raises(TimeoutError):
            await limit.of(forever())
    task = asyncio.current_task()
    assert len(limit) == 0
    assert task is not None
    assert task.cancelling() == 0


async def test_each_await_has_the_whole_limit_from_its_own_beginning() -> None:
    clock = Clock()
    limit = TimeLimit(FAR_S, clock)
    first = asyncio.create_task(limit.of(forever()))
    await begun(limit, 1)
    clock.now = 1.0
    second = asyncio.create_task(limit.of(forever()))
    await begun(limit, 2)
    clock.now = FAR_S
    limit.cancel_overdue()
    with pytest.raises(TimeoutError):
        await first
    limit.cancel_overdue()
    assert len(limit) == 1
    clock.now = FAR_S + 1.0
    limit.cancel_overdue()
    with pytest.raises(TimeoutError):
        await second


async def test_cancellation_from_elsewhere_is_no_timeout() -> None:
    limit = TimeLimit(FAR_S)
    task = asyncio.create_task(limit.of(forever()))
    await begun(limit, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(limit) == 0


async def test_cancellation_that_meets_the_limit_wins() -> None:
    clock = Clock()
    limit = TimeLimit(FAR_S, clock)
    task = asyncio.create_task(limit.of(forever()))
    await begun(limit, 1)
    clock.now = FAR_S
    limit.cancel_overdue()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_scope_around_it_that_expires_at_once_ends_in_its_own_timeout() -> None:
    clock = Clock()
    limit = TimeLimit(FAR_S, clock)
    scopes: list[asyncio.Timeout] = []
    inner: list[BaseException] = []

    async def work() -> None:
        async with asyncio.timeout(None) as scope:
            scopes.append(scope)
            try:
                await limit.of(forever())
            except BaseException as error:
                inner.append(error)
                raise

    task = asyncio.create_task(work())
    await begun(limit, 1)
    clock.now = FAR_S
    limit.cancel_overdue()
    scopes[0].reschedule(asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError):
        await task
    assert task.cancelling() == 0


async def test_answer_that_meets_the_limit_leaves_no_cancellation_behind() -> None:
    clock = Clock()
    limit = TimeLimit(FAR_S, clock)

    async def stubborn() -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            return "answer"
        return "never"

    async def work() -> tuple[str, int]:
        answer = await limit.of(stubborn())
        task = asyncio.current_task()
        assert task is not None
        return answer, task.cancelling()

    task = asyncio.create_task(work())
    await begun(limit, 1)
    clock.now = FAR_S
    limit.cancel_overdue()
    assert await task == ("answer", 0)


async def test_timer_looks_again_for_the_next_that_may_be_overdue() -> None:
    clock = Clock()
    limit = TimeLimit(0.01, clock)
    first = asyncio.create_task(limit.of(forever()))
    await begun(limit, 1)
    clock.now = 0.005
    second = asyncio.create_task(limit.of(forever()))
    await begun(limit, 2)
    clock.now = 0.01
    with pytest.raises(TimeoutError):
        await first
    clock.now = 1.0
    async with asyncio.timeout(20):
        await asyncio.wait({second})
    with pytest.raises(TimeoutError):
        await second
