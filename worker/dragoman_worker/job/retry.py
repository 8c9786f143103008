"""Retries of one generation: the number of attempts and the back-off between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from dragoman_worker.backoff import backoff
from dragoman_worker.errors import JobError, TransientEngineError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts of one generation and the back-off between them, in seconds."""

    attempts: int = 3
    initial_s: float = 0.2
    max_s: float = 5.0

    async def after(self, error: JobError, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat an attempt that failed with `error`, until one succeeds or no more are allowed.

        Raises the last JobError; one that is no TransientEngineError at once. The caller makes the
        first attempt, without the cost of tenacity: nearly every generation needs no other.
        """
        failed: list[JobError] = [error]

        async def counted() -> T:
            if failed:  # the attempt that the caller made
                raise failed.pop()
            return await attempt()

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=backoff(self.initial_s, self.max_s),
            retry=tenacity.retry_if_exception_type(TransientEngineError),
            reraise=True,
        )
        return await retrying(counted)
