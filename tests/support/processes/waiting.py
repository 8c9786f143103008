"""Bounded waits for conditions, for threads and for the event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, overload

T = TypeVar("T")

SLOW_MACHINE: Final = 3.0
"""Factor on every bound of a second or more: a shared machine is several times slower."""
_FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.2
_SHARE: Final = 0.1
"""Pause as a share of the time waited so far: polling a long wait must not use up a core."""


class NotInTime(AssertionError):
    """The condition did not become true within its bound."""


def patient(timeout_s: float) -> float:
    """Return the bound for this machine: at least `timeout_s`, more if it is a second or longer."""
    return timeout_s * SLOW_MACHINE if timeout_s >= 1 else timeout_s


class _Wait:
    def __init__(self, timeout_s: float, longest_pause_s: float, what: str) -> None:
        self._bound_s = patient(timeout_s)
        self._longest_pause_s = longest_pause_s
        self._what = what
        self._began = time.monotonic()

    def pause_s(self) -> float:
        """Return the pause before the next look; raises NotInTime once the bound has passed."""
        waited_s = time.monotonic() - self._began
        if waited_s >= self._bound_s:
            raise NotInTime(f"{self._what}: not within {self._bound_s:g} s")
        return min(self._longest_pause_s, max(_FIRST_PAUSE_S, _SHARE * waited_s))


def wait_until(
    condition: Callable[[], T],
    *,
    timeout_s: float,
    what: str,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> T:
    """Return the first truthy value of `condition`; raises NotInTime after the bound.

    The pause between two looks grows from 20 ms to `longest_pause_s`.
    """
    wait = _Wait(timeout_s, longest_pause_s, what)
    while not (value := condition()):
        time.sleep(wait.pause_s())
    return value


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]],
    *,
    timeout_s: float,
    what: str,
    longest_pause_s: float = ...,
) -> T: ...
@overload
async def eventually(
    condition: Callable[[], T], *, timeout_s: float, what: str, longest_pause_s: float = ...
) -> T: ...
async def eventually(
    condition: Callable[[], object],
    *,
    timeout_s: float,
    what: str,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> object:
    """Wait like `wait_until`, without blocking the event loop; `condition` may be a coroutine."""
    wait = _Wait(timeout_s, longest_pause_s, what)
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await asyncio.sleep(wait.pause_s())
