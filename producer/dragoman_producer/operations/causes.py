"""How many jobs ended by which cause: one line in place of one per job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Causes:
    """How many jobs ended by each cause, with the first job of each."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, cause: str, job_id: str) -> None:
        """Count a job."""
        self.counts[cause] += 1
        self.first.setdefault(cause, job_id)

    @property
    def total(self) -> int:
        """The number of jobs."""
        return self.counts.total()

    def told(self) -> str:
        """Return all causes in words, the most frequent first."""
        return ", ".join(
            f"{count:,} {cause} (first {self.first[cause]})"
            for cause, count in self.counts.most_common()
        )
