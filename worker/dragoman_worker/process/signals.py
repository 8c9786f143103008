"""Signal handlers: the first stop signal drains, the second aborts."""

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
    """Call `stop` at every SIGTERM, and both `stop` and `abort` at the abort signal.

    Afterwards both are ignored. A busy supervisor may forward a signal that the process group has
    received when this replica has already drained; its exit must not look like a death by signal.
    """

    def on_abort() -> None:
        stop()
        abort()

    handlers = {signal.SIGTERM: stop, ABORT_SIGNAL: on_abort}
    try:
        with _handled(handlers):
            yield
    finally:
        for number in handlers:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def stop_signals_blocked() -> Iterator[None]:
    """Block stop signals until `stop_signals_unblocked`, or until the context exits."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stop_signals_unblocked() -> Iterator[None]:
    """Unblock stop signals inside the context, pending ones first; then restore the mask."""
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
