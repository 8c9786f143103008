"""Retries of one generation: the number of attempts and the back-off between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from dragoman_worker.errors import Disposition, JobError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts of one generation and the back-off between them, in seconds, with full jitter."""

    attempts: int = 3
    initial_s: float = 0.2
    max_s: float = 5.0

    async def after(self, error: JobError, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat an attempt that failed with `error`, until one succeeds or no more are allowed.

        Raises the last JobError; one whose disposition is not `retry` at once. The caller makes the
        first attempt, without the cost of tenacity: nearly every generation needs no other.
        """
        if not _worth_retrying(error) or self.attempts == 1:
            raise error
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.attempts - 1),
            wait=tenacity.wait_random_exponential(multiplier=self.initial_s, max=self.max_s),
            retry=tenacity.retry_if_exception(_worth_retrying),
            reraise=True,
        )
        first_s = min(self.initial_s, self.max_s)
        await asyncio.sleep(random.uniform(0, first_s))  # noqa: S311  jitter, no secret
        return await retrying(attempt)


def _worth_retrying(error: BaseException) -> bool:
    return isinstance(error, JobError) and error.disposition is Disposition.RETRY
