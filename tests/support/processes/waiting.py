"""Has it happened yet? Waiting for a condition with a bound, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

_POLL_S = 0.02


class NotInTime(AssertionError):
    """The condition did not become true within its bound."""


def wait_until(condition: Callable[[], T], *, timeout_s: float, what: str) -> T:
    """The first truthy value of `condition`, looked at every 20 ms; NotInTime after the bound."""
    deadline = time.monotonic() + timeout_s
    while True:
        if value := condition():
            return value
        if time.monotonic() >= deadline:
            raise NotInTime(f"{what}: not within {timeout_s:g} s")
        time.sleep(_POLL_S)


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]], *, timeout_s: float, what: str
) -> T: ...
@overload
async def eventually(condition: Callable[[], T], *, timeout_s: float, what: str) -> T: ...
async def eventually(condition: Callable[[], object], *, timeout_s: float, what: str) -> object:
    """`wait_until` for the event loop; the condition may be a coroutine function."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if time.monotonic() >= deadline:
            raise NotInTime(f"{what}: not within {timeout_s:g} s")
        await asyncio.sleep(_POLL_S)
