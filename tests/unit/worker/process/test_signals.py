"""Stop signals reach the worker once each and in order."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dragoman_connections.child import STOP_SIGNALS, signals_blocked
from dragoman_worker.process.parent_link import ABORT_SIGNAL
from dragoman_worker.process.signals import stop_signals, supervised_signals
from support.processes.waiting import eventually

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
HANG_UP = signal.SIGHUP


async def send(number: signal.Signals, handled: list[str]) -> None:
    """Send a signal to this process and wait for its handler."""
    before = len(handled)
    os.kill(os.getpid(), number)
    await eventually(lambda: len(handled) > before, timeout_s=30, what=f"{number.name} handled")


@pytest.mark.parametrize("number", STOPPING)
async def test_the_first_signal_drains_and_every_further_one_aborts(number: signal.Signals) -> None:
    handled: list[str] = []
    with stop_signals(lambda: handled.append("stop"), lambda: handled.append("abort")):
        for _ in range(3):
            await send(number, handled)
    assert handled == ["stop", "abort", "abort"]


async def test_either_signal_counts_as_the_first() -> None:
    handled: list[str] = []
    with stop_signals(lambda: handled.append("stop"), lambda: handled.append("abort")):
        await send(signal.SIGTERM, handled)
        await send(signal.SIGINT, handled)
    assert handled == ["stop", "abort"]


async def test_a_hang_up_drains_and_never_aborts_however_often_it_comes() -> None:
    handled: list[str] = []
    with stop_signals(lambda: handled.append("stop"), lambda: handled.append("abort")):
        for number in (HANG_UP, HANG_UP, signal.SIGTERM, HANG_UP, signal.SIGTERM):
            await send(number, handled)
    assert handled == ["stop", "stop", "stop", "stop", "abort"]


@pytest.mark.parametrize("number", [HANG_UP, signal.SIGQUIT])
async def test_a_signal_that_was_ignored_at_the_start_stays_ignored(
    number: signal.Signals,
) -> None:
    before = signal.signal(number, signal.SIG_IGN)  # as nohup does
    handled: list[str] = []
    try:
        with stop_signals(lambda: handled.append("stop"), lambda: handled.append("abort")):
            os.kill(os.getpid(), number)
            await send(signal.SIGTERM, handled)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert handled == ["stop"]


async def test_the_previous_signal_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals(lambda: None, lambda: None):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


async def test_signals_that_reach_a_replica_after_its_drain_are_ignored() -> None:
    numbers = (signal.SIGTERM, ABORT_SIGNAL)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        with supervised_signals(lambda: None, lambda: None):
            pass
        assert [signal.getsignal(number) for number in numbers] == [signal.SIG_IGN] * 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("number", STOP_SIGNALS)
async def test_a_signal_that_was_blocked_is_handled_as_soon_as_there_is_a_handler(
    number: signal.Signals,
) -> None:
    handled: list[str] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with signals_blocked():
        # To this thread: other threads of a test run do not block it; a starting worker has none.
        signal.pthread_kill(threading.get_ident(), number)
        assert number in signal.sigpending()
        with stop_signals(lambda: handled.append("stop"), lambda: handled.append("abort")):
            await eventually(lambda: bool(handled), timeout_s=30, what="the blocked signal")
        assert number in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert handled == ["stop"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
