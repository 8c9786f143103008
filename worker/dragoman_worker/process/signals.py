"""What happens when the process is told to stop? The first signal drains, the second aborts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dragoman_worker.process.parent_link import ABORT_SIGNAL

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(stop: Callable[[], None], abort: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first SIGTERM or SIGINT and `abort` at every further one."""
    pending = iter([stop])

    def on_signal() -> None:
        next(pending, abort)()

    with _handled(dict.fromkeys(STOP_SIGNALS, on_signal)):
        yield


@contextmanager
def supervised_signals(stop: Callable[[], None], abort: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at every SIGTERM, and `abort` when the supervisor asks for that."""

    def on_abort() -> None:
        stop()
        abort()

    with _handled({signal.SIGTERM: stop, ABORT_SIGNAL: on_abort}):
        yield


@contextmanager
def signals_held() -> Iterator[None]:
    """Keep stop signals for later: until `signals_heard`, or the end of the context."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def signals_heard() -> Iterator[None]:
    """Hear stop signals while inside, those first that were held; then be as before."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
