"""When is a replica that ended started again, and when is that given up?"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Doubling waits with jitter, in seconds; `starts` failures in a row are the end."""

    initial_s: float = 0.5
    max_s: float = 30.0
    starts: int = 5
    failures: int = 0
    """Starts in a row that did not become ready."""

    def became_ready(self) -> None:
        """The count begins anew."""
        self.failures = 0

    def failed(self) -> None:
        """A start ended before the replica was ready."""
        self.failures += 1

    @property
    def exhausted(self) -> bool:
        return self.failures >= self.starts

    def delay_s(self) -> float:
        """How long to wait before the next start."""
        longest = min(self.max_s, self.initial_s * 2 ** max(0, self.failures - 1))
        return random.uniform(longest / 2, longest)  # noqa: S311  jitter, no secret
