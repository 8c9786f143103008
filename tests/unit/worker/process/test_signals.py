"""Do the signals of an operator reach the worker, once each and in order?"""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dragoman_worker.process.signals import STOP_SIGNALS, signals_heard, signals_held, stop_signals
from support.processes.waiting import eventually


async def send(number: signal.Signals, heard: list[str]) -> None:
    """Signal ourselves and wait until that was heard."""
    before = len(heard)
    os.kill(os.getpid(), number)
    await eventually(lambda: len(heard) > before, timeout_s=5, what=f"{number.name} heard")


@pytest.mark.parametrize("number", STOP_SIGNALS)
async def test_the_first_signal_drains_and_every_further_one_aborts(number: signal.Signals) -> None:
    heard: list[str] = []
    with stop_signals(lambda: heard.append("stop"), lambda: heard.append("abort")):
        for _ in range(3):
            await send(number, heard)
    assert heard == ["stop", "abort", "abort"]


async def test_either_signal_counts_as_the_first() -> None:
    heard: list[str] = []
    with stop_signals(lambda: heard.append("stop"), lambda: heard.append("abort")):
        await send(signal.SIGTERM, heard)
        await send(signal.SIGINT, heard)
    assert heard == ["stop", "abort"]


async def test_afterwards_the_signals_mean_what_they_meant() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals(lambda: None, lambda: None):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", STOP_SIGNALS)
async def test_a_held_signal_is_heard_as_soon_as_somebody_listens(number: signal.Signals) -> None:
    heard: list[str] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with signals_held():
        # To this thread: a test run has others, which do not hold it; a starting worker has none.
        signal.pthread_kill(threading.get_ident(), number)
        with stop_signals(lambda: heard.append("stop"), lambda: heard.append("abort")):
            assert not heard
            with signals_heard():
                await eventually(lambda: bool(heard), timeout_s=5, what="the held signal")
            assert number in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert heard == ["stop"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
