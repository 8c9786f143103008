"""The back-off of the worker: tenacity's exponential wait with jitter.

Only `process/backoff` has its own, because the supervisor imports nothing but the standard library
until its first replica runs.
"""

from __future__ import annotations

from typing import Final

from tenacity import AsyncRetrying, RetryCallState, wait_exponential, wait_random_exponential
from tenacity.wait import wait_base

LONGEST_S: Final = 5.0
"""Bound of the wait between two calls to a server that is unavailable, in seconds."""


def backoff(first_s: float = 0.2, longest_s: float = LONGEST_S) -> wait_base:
    """Return a wait of `first_s` that doubles with each failure up to `longest_s`.

    Jitter shortens it by up to half: what failed together is not repeated together. The defaults
    are for a server that is unavailable, and used by all that call Redis.
    """
    half, longest = first_s / 2, longest_s / 2
    return wait_exponential(half, longest) + wait_random_exponential(half, longest)


def pause_s(wait: wait_base, failures: int) -> float:
    """Return the seconds to wait after so many failures in a row, outside of tenacity's loop."""
    state = RetryCallState(AsyncRetrying(), fn=None, args=(), kwargs={})
    state.attempt_number = failures
    return wait(state)
