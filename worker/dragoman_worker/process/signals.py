"""Signal handlers: the first stop signal drains, the second aborts.

A closed terminal or a lost ssh drains too. It never aborts: the shell and the kernel may each send
a SIGHUP, and systemd sends one right after its SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dragoman_connections.child import STOP_SIGNALS
from dragoman_worker.process.parent_link import ABORT_SIGNAL

_MAY_BE_IGNORED: Final = (signal.SIGQUIT, signal.SIGHUP)
"""A program that was started with these ignored, as by nohup, continues to ignore them."""


@contextmanager
def stop_signals(stop: Callable[[], None], abort: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first stop signal and at every SIGHUP, `abort` at further stop signals.

    Those that were blocked until now come first; afterwards they are blocked again.
    """
    pending = iter([stop])

    def on_signal() -> None:
        next(pending, abort)()

    with _handled({**dict.fromkeys(STOP_SIGNALS, on_signal), signal.SIGHUP: stop}):
        before = signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
def _handled(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    handled = [number for number in handlers if not stays_ignored(number)]
    for number in handled:
        loop.add_signal_handler(number, handlers[number])
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def stays_ignored(number: signal.Signals) -> bool:
    """Whether the program was started with this signal ignored, and continues to ignore it."""
    return number in _MAY_BE_IGNORED and signal.getsignal(number) is signal.SIG_IGN
