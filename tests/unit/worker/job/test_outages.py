"""Tests of repeating calls to an unavailable server, and of naming the servers that are down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from dragoman_worker.backoff import LONGEST_S
from dragoman_worker.errors import Halt, TransientEngineError, Unavailable, UnknownReply
from dragoman_worker.job.outages import (
    DEAD_LETTERS,
    SETTLED_S,
    STORE,
    UNKNOWN_S,
    Outages,
    Patience,
)
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
    assert max(sleeps) <= LONGEST_S


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


@pytest.mark.parametrize("server", [STORE, DEAD_LETTERS])
async def test_an_outage_is_logged_once_and_so_is_its_end(server: str) -> None:
    outages = Outages(0)
    back = asyncio.Event()

    async def call() -> None:
        if not back.is_set():
            raise Unavailable("topic dead: InvalidRecord")

    with capture_logs() as lines:
        waiting = [asyncio.create_task(outages.until_available(server, call)) for _ in range(5)]
        await eventually(lambda: outages.any, timeout_s=30, what="an outage")
        assert [line["error"] for line in lines] == ["topic dead: InvalidRecord"]
        back.set()
        await asyncio.gather(*waiting)
        await outages.until_available(server, call)
    assert len(lines) == 2


# --- unknown replies ------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def unknown(answered_at: float | None, server: str = "a:1") -> UnknownReply:
    return UnknownReply("?", server=server, answered_at=answered_at, verdict=Halt("refused"))


def refused_for(seconds: float, answered: Callable[[float], float | None]) -> None:
    """Refuse a call every second; `answered` says when its server last answered another one."""
    clock = Clock()
    patience, began = Patience(clock), clock.now
    while clock.now - began <= seconds:
        at = answered(clock.now - began)
        patience.test(unknown(None if at is None else began + at))
        clock.now += 1


def test_a_server_that_answers_nobody_is_waited_for_without_a_limit() -> None:
    refused_for(3_600, lambda _: None)


def test_replies_that_were_under_way_when_an_outage_began_are_no_answers_in_it() -> None:
    refused_for(3_600, lambda _: -50.0)
    refused_for(3_600, lambda _: SETTLED_S / 2)


def test_a_server_that_refuses_one_call_alone_is_waited_for_a_minute() -> None:
    refused_for(UNKNOWN_S - 1, lambda now: now)
    with pytest.raises(Halt, match="refused"):
        refused_for(UNKNOWN_S, lambda now: now)


def test_a_call_that_is_refused_just_after_others_are_answered_again_is_repeated() -> None:
    refused_for(600 + SETTLED_S - 1, lambda now: now if now >= 600 else None)
    with pytest.raises(Halt):
        refused_for(600 + SETTLED_S, lambda now: now if now >= 600 else None)


def test_a_minute_begins_again_after_an_outage_and_at_another_server() -> None:
    for between in (Unavailable("down"), unknown(None, "b:1")):
        clock = Clock()
        patience = Patience(clock)
        patience.test(unknown(None))
        clock.now += UNKNOWN_S - 1
        patience.test(unknown(clock.now))
        patience.test(between)
        clock.now += SETTLED_S + 1
        patience.test(unknown(clock.now))


async def test_a_call_that_a_server_refuses_alone_raises_its_verdict(sleeps: list[float]) -> None:
    clock = Clock()

    async def refused() -> None:
        clock.now += 1
        raise unknown(clock.now)

    with pytest.raises(Halt):
        await Outages(clock=clock).until_available(STORE, refused)
