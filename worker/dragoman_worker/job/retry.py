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

    async def run(self, attempt: Callable[[int], Awaitable[T]]) -> T:
        """Call `attempt(1)`, `attempt(2)`, ... until one succeeds or no more are allowed.

        Raises the last JobError; one whose disposition is not `retry` at once.
        """
        # Nearly every generation needs one attempt, which skips the cost of tenacity below.
        try:
            return await attempt(1)
        except JobError as error:
            if not _worth_retrying(error) or self.attempts == 1:
                raise
        number = 1

        async def next_attempt() -> T:
            nonlocal number
            number += 1
            return await attempt(number)

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.attempts - 1),
            wait=tenacity.wait_random_exponential(multiplier=self.initial_s, max=self.max_s),
            retry=tenacity.retry_if_exception(_worth_retrying),
            reraise=True,
        )
        first_s = min(self.initial_s, self.max_s)
        await asyncio.sleep(random.uniform(0, first_s))  # noqa: S311  jitter, no secret
        return await retrying(next_attempt)


def _worth_retrying(error: BaseException) -> bool:
    return isinstance(error, JobError) and error.disposition is Disposition.RETRY
