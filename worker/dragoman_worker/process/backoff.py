"""When is a replica that ended started again, and when is that given up?"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_MOST_DOUBLINGS: Final = 30
"""2 ** 1100 is no float."""


@dataclass(slots=True)
class Backoff:
    """Doubling waits with jitter, in seconds; `starts` failures in a row are the end."""

    initial_s: float = 0.5
    max_s: float = 30.0
    starts: int = 5
    failures: int = 0
    """Starts in a row that did not become ready."""
    setbacks: int = 0
    """Ends in a row of replicas that had not recovered: what the wait grows with."""

    def became_ready(self) -> None:
        """The count of failed starts begins anew; the waits do not."""
        self.failures = 0

    def recovered(self) -> None:
        """The replica worked before it ended: the waits begin anew."""
        self.setbacks = 0

    def ended(self) -> None:
        """The replica ended without being told to."""
        self.setbacks += 1

    def failed(self) -> None:
        """A start ended before the replica was ready."""
        self.failures += 1

    @property
    def exhausted(self) -> bool:
        return self.failures >= self.starts

    def delay_s(self) -> float:
        """How long to wait before the next start."""
        doublings = min(_MOST_DOUBLINGS, max(0, self.setbacks - 1))
        longest = min(self.max_s, self.initial_s * 2**doublings)
        return random.uniform(longest / 2, longest)  # noqa: S311  jitter, no secret
