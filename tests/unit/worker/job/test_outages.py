"""Tests of repeating calls to an unavailable server, and of naming the servers that are down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman_worker.errors import Halt, TransientEngineError, Unavailable
from dragoman_worker.job.outages import MAX_PAUSE_S, STORE, Outages
from dragoman_worker.job.retry import RetryPolicy
from support.processes.waiting import eventually

AT_ONCE = RetryPolicy(attempts=3, initial_s=0, max_s=0)


def failing(*outcomes: BaseException | str) -> tuple[Callable[[], Awaitable[str]], list[int]]:
    """Return a call with the listed results, and a list that grows by one with each call."""
    calls: list[int] = []
    left = list(outcomes)

    async def call() -> str:
        calls.append(len(calls))
        outcome = left.pop(0)
        if isinstance(outcome, str):
            return outcome
        raise outcome

    return call, calls


async def test_an_outage_is_waited_out_however_long_it_takes(sleeps: list[float]) -> None:
    call, calls = failing(*(Unavailable() for _ in range(500)), "back")
    assert await Outages().until_available(STORE, call) == "back"
    assert len(calls) == 501
    assert max(sleeps) <= MAX_PAUSE_S


async def test_an_outage_inside_an_attempt_consumes_no_attempt() -> None:
    call, calls = failing(*(Unavailable() for _ in range(5)), "back")
    generated: list[str] = []

    async def attempt() -> str:
        generated.append("again")
        return await Outages(0).until_available(STORE, call)

    assert await AT_ONCE.after(TransientEngineError(), attempt) == "back"
    assert (generated, len(calls)) == (["again"], 6)


@pytest.mark.parametrize("error", [TransientEngineError("no"), Halt("no"), ValueError("no")])
async def test_an_outage_is_the_only_thing_waited_out(error: Exception) -> None:
    call, _ = failing(Unavailable(), error, "never")
    with pytest.raises(type(error), match="no"):
        await Outages(0).until_available(STORE, call)


async def test_waiting_for_an_outage_to_end_can_be_cancelled() -> None:
    call, calls = failing(*(Unavailable() for _ in range(500)))
    task = asyncio.create_task(Outages(3_600).until_available(STORE, call))
    await eventually(lambda: calls, timeout_s=30, what="the first call")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_outage_lasts_until_the_server_has_answered_again() -> None:
    outages = Outages(0)
    back = asyncio.Event()

    async def unavailable() -> int:
        if not back.is_set():
            raise Unavailable("unavailable")
        return 7

    async def answers() -> int:
        return 7

    waiting = asyncio.create_task(outages.until_available("letters", unavailable))
    await eventually(lambda: outages.any, timeout_s=30, what="an outage")
    assert await outages.until_available(STORE, answers) == 7
    assert (outages.of("letters"), outages.of(STORE)) == (True, False)
    back.set()
    assert await waiting == 7
    assert not outages.any


async def test_a_call_that_still_fails_renews_the_outage_that_another_one_ended() -> None:
    outages = Outages(0)
    calls: list[int] = []

    async def unavailable() -> None:
        calls.append(0)
        raise Unavailable("unavailable")

    async def answers() -> None:
        pass

    waiting = asyncio.create_task(outages.until_available(STORE, unavailable))
    await eventually(lambda: outages.any, timeout_s=30, what="an outage")
    await outages.until_available(STORE, answers)
    before = len(calls)
    await eventually(lambda: len(calls) > before, timeout_s=30, what="another try")
    assert outages.of(STORE)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
