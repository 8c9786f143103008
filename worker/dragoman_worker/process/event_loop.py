"""Event loop and garbage collection of the worker's processes.

The loop is uvloop's where that is installed. Reference counts free the objects of a job when it is
finished; the collector is only needed for cycles, which jobs do not make and failures do. With its
default thresholds it would scan the objects of all jobs in flight over and over, and the whole
program every tenth time.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

YOUNG: Final = 50_000
"""Containers allocated and not freed before a collection: at most some 10 MB of garbage."""


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a new event loop and return its result."""
    runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run
    try:
        import uvloop  # noqa: PLC0415  it does not exist for every platform
    except ModuleNotFoundError:
        pass
    else:
        runner = uvloop.run
    return runner(main)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Freeze the objects that exist now, and collect younger ones seldom, inside the context."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
