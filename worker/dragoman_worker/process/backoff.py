"""Wait before a replica that exited is restarted, and the limit on failed starts.

The only back-off that is not tenacity's: the supervisor imports nothing but the standard library
until its first replica runs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_MOST_DOUBLINGS: Final = 30
"""2 ** 1100 exceeds a float."""


@dataclass(slots=True)
class Backoff:
    """Doubling waits with jitter, in seconds, up to `starts` failed starts in a row."""

    initial_s: float = 0.5
    max_s: float = 30.0
    starts: int = 5
    failures: int = 0
    """Starts in a row that did not become ready."""
    setbacks: int = 0
    """Exits in a row of replicas that had not recovered; the wait doubles with each."""

    def became_ready(self) -> None:
        """Reset the count of failed starts, but not the wait."""
        self.failures = 0

    def recovered(self) -> None:
        """Reset the wait: the replica worked before it exited."""
        self.setbacks = 0

    def exited(self) -> None:
        """Count an exit of the replica that the supervisor did not ask for."""
        self.setbacks += 1

    def failed(self) -> None:
        """Count a start that exited before the replica was ready."""
        self.failures += 1

    @property
    def exhausted(self) -> bool:
        """Whether too many starts in a row have failed."""
        return self.failures >= self.starts

    def delay_s(self) -> float:
        """Return the seconds to wait before the next start."""
        doublings = min(_MOST_DOUBLINGS, max(0, self.setbacks - 1))
        longest = min(self.max_s, self.initial_s * 2**doublings)
        return random.uniform(longest / 2, longest)  # noqa: S311  jitter, no secret
