"""What happens when the process is told to stop? The first signal drains, the second aborts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(stop: Callable[[], None], abort: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first SIGTERM or SIGINT and `abort` at every further one."""
    loop = asyncio.get_running_loop()
    pending = iter([stop])

    def on_signal() -> None:
        next(pending, abort)()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
