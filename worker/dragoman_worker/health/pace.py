"""Rate of finished work, from which the lag in tokens and seconds is estimated."""

from __future__ import annotations

import time


class Pace:
    """Jobs and tokens per second, smoothed over about a minute of work."""

    def __init__(self) -> None:
        self._jobs = self._tokens = 0.0
        self._at = time.monotonic()
        self._jobs_per_s = self._tokens_per_s = 0.0

    def work(self, lag: int, jobs: float, tokens: float) -> tuple[float, float]:
        """Return the estimated tokens and seconds of `lag` jobs.

        `jobs` and `tokens` are the totals done until now. Before the first job is done, the
        estimate is 0 tokens and infinite seconds.
        """
        now = time.monotonic()
        elapsed = max(1e-3, now - self._at)
        weight = min(1.0, elapsed / 60.0) if self._jobs_per_s else 1.0
        if lag or jobs > self._jobs:  # an empty queue is no measurement of the rate
            self._jobs_per_s += weight * ((jobs - self._jobs) / elapsed - self._jobs_per_s)
            rate = (tokens - self._tokens) / elapsed
            self._tokens_per_s += weight * (rate - self._tokens_per_s)
        self._jobs, self._tokens, self._at = jobs, tokens, now
        if lag == 0:
            return 0.0, 0.0
        if self._jobs_per_s <= 0:
            return 0.0, float("inf")
        seconds = lag / self._jobs_per_s
        return seconds * self._tokens_per_s, seconds
