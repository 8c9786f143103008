"""A time budget that all steps of a start, a connect or a drain share; not a job's deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on a monotonic clock; immune to changes of the wall clock."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    @property
    def left_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.left_s == 0.0

    def at_most(self, seconds: float) -> float:
        """Return the timeout for one step: `seconds`, or the time left if that is less."""
        return min(seconds, self.left_s)
