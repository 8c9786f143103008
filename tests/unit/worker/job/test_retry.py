"""Retries: transient errors are retried up to the limit, others are not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman_worker.errors import (
    Halt,
    JobError,
    PermanentEngineError,
    TransientEngineError,
    Unavailable,
)
from dragoman_worker.job.retry import RetryPolicy
from support.processes.waiting import eventually

AT_ONCE = RetryPolicy(attempts=3, initial_s=0, max_s=0)


async def run(policy: RetryPolicy, attempt: Callable[[], Awaitable[str]]) -> str:
    """Attempt as the generator does."""
    try:
        return await attempt()
    except JobError as error:
        return await policy.after(error, attempt)


def failing(*outcomes: BaseException | str) -> tuple[Callable[[], Awaitable[str]], list[int]]:
    """Return an attempt with the listed results, and the numbers of its calls."""
    numbers: list[int] = []
    left = list(outcomes)

    async def attempt() -> str:
        numbers.append(len(numbers) + 1)
        outcome = left.pop(0)
        if isinstance(outcome, str):
            return outcome
        raise outcome

    return attempt, numbers


async def test_a_success_needs_one_attempt() -> None:
    attempt, numbers = failing("ok")
    assert await run(AT_ONCE, attempt) == "ok"
    assert numbers == [1]


async def test_attempts_are_counted_from_one_until_one_succeeds() -> None:
    attempt, numbers = failing(TransientEngineError(), TransientEngineError(), "ok")
    assert await run(AT_ONCE, attempt) == "ok"
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize("attempts", [1, 2, 3, 5])
async def test_the_last_error_is_raised_when_the_attempts_are_used_up(attempts: int) -> None:
    attempt, numbers = failing(*(TransientEngineError(str(number)) for number in range(1, 10)))
    with pytest.raises(TransientEngineError, match=str(attempts)):
        await run(RetryPolicy(attempts=attempts, initial_s=0, max_s=0), attempt)
    assert numbers == list(range(1, attempts + 1))


@pytest.mark.parametrize(
    "error", [PermanentEngineError("no"), Halt("no"), Unavailable("no"), ValueError("no")]
)
@pytest.mark.parametrize("before", [0, 1])
async def test_whatever_asking_again_does_not_help_is_raised_at_once(
    error: Exception, before: int
) -> None:
    attempt, numbers = failing(*(TransientEngineError() for _ in range(before)), error, "never")
    with pytest.raises(type(error), match="no"):
        await run(AT_ONCE, attempt)
    assert len(numbers) == before + 1


@pytest.mark.parametrize("before", [0, 1])
async def test_a_cancellation_passes_through(before: int) -> None:
    attempt, numbers = failing(
        *(TransientEngineError() for _ in range(before)), asyncio.CancelledError()
    )
    with pytest.raises(asyncio.CancelledError):
        await run(AT_ONCE, attempt)
    assert len(numbers) == before + 1


async def test_a_cancellation_during_the_back_off_ends_it() -> None:
    attempt, numbers = failing(TransientEngineError(), "never")
    task = asyncio.create_task(run(RetryPolicy(attempts=3, initial_s=3_600, max_s=3_600), attempt))
    await eventually(lambda: numbers, timeout_s=30, what="the first attempt")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert numbers == [1]


@pytest.mark.parametrize("initial_s", [0.2, 4.0, 50.0])
async def test_back_offs_double_with_jitter_up_to_their_bound(
    initial_s: float, sleeps: list[float]
) -> None:
    policy = RetryPolicy(attempts=6, initial_s=initial_s, max_s=5.0)
    for _ in range(200):
        attempt, _ = failing(*(TransientEngineError() for _ in range(6)))
        with pytest.raises(JobError):
            await run(policy, attempt)
    rounds = [sleeps[start : start + 5] for start in range(0, len(sleeps), 5)]
    assert len(rounds) == 200
    for number, waits in enumerate(zip(*rounds, strict=True)):
        bound = min(5.0, initial_s * 2**number)
        assert bound / 2 <= min(waits) < bound * 5 / 8
        assert bound * 7 / 8 < max(waits) <= bound
