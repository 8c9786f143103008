"""Event loop of the worker's processes: uvloop where it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


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
