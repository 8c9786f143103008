"""Rounds of suspects in the engine: a cohort of them, or one by itself, and no other job.

A suspect is a record that was in the engine when processes died; one of them may kill the next
process. Cohorts find out in few rounds which ones cannot (docs/adr/0015).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Final

SMALLEST_COHORT: Final = 16
"""Suspects that may run together, however few are waiting."""


@dataclass(slots=True, eq=False)
class Suspect:
    """One suspect in quarantine; `admitted` is set when it may enter the engine."""

    job: str
    by_itself: bool
    admitted: asyncio.Future[None]


class QuarantineRounds:
    """The suspects that wait for a round, and those of the current round."""

    def __init__(self) -> None:
        self._waiting: dict[Suspect, None] = {}
        self._inside: set[Suspect] = set()
        self._jobs: Counter[str] = Counter()
        self._cohort: int | None = None
        """Suspects that the current round has admitted; None unless it is a cohort's."""
        self._finishing: frozenset[str] = frozenset()
        """Other jobs that may enter during the current round."""

    @property
    def waiting(self) -> int:
        """Suspects that wait for a round."""
        return len(self._waiting)

    @property
    def inside(self) -> int:
        """Suspects of the current round; 0 if there is none."""
        return len(self._inside)

    @property
    def jobs(self) -> Container[str]:
        """Jobs that may enter during the current round."""
        return self._finishing.union(self._jobs) if self._finishing else self._jobs

    def holds(self, job: str) -> bool:
        """Whether a suspect of this job is in the current round."""
        return job in self._jobs

    def let_finish(self, jobs: Iterable[str]) -> None:
        """Let these jobs enter too until the current round is over."""
        self._finishing = frozenset(jobs)

    def join(self, job: str, *, by_itself: bool) -> Suspect:
        """Queue a suspect for a round, behind those that wait already."""
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        suspect = Suspect(job, by_itself, admitted)
        self._waiting[suspect] = None
        return suspect

    def leave(self, suspect: Suspect) -> bool:
        """Remove a suspect, admitted or not, and return whether that ended a round.

        Call it exactly once per suspect.
        """
        if suspect not in self._inside:
            del self._waiting[suspect]
            return False
        self._inside.remove(suspect)
        self._jobs[suspect.job] -= 1
        self._jobs += Counter()  # drops jobs that count 0
        if self._inside:
            return False
        self._cohort = None
        self._finishing = frozenset()
        return True

    def begin_round(self) -> None:
        """Admit the first waiting suspect, and others with it if it may run in a cohort."""
        if self._inside or (first := next(self._ready(), None)) is None:
            return
        self._cohort = None if first.by_itself else 0
        if first.by_itself:
            self._admit(first)
        self.fill_cohort()

    def fill_cohort(self) -> None:
        """Admit suspects that joined after the round began, up to the size of the cohort."""
        if self._cohort is None or self._cohort >= cohort_size(self._cohort + len(self._waiting)):
            return
        ready = [suspect for suspect in self._ready() if not suspect.by_itself]
        capacity = cohort_size(self._cohort + len(ready)) - self._cohort
        for suspect in ready[:capacity]:
            self._cohort += 1
            self._admit(suspect)

    def _ready(self) -> Iterator[Suspect]:
        return (suspect for suspect in self._waiting if not suspect.admitted.done())

    def _admit(self, suspect: Suspect) -> None:
        del self._waiting[suspect]
        self._inside.add(suspect)
        self._jobs[suspect.job] += 1
        suspect.admitted.set_result(None)

    def reject_waiting(self, reason: type[Exception]) -> None:
        """Raise `reason` in all waiting suspects; those of the current round go on."""
        for suspect in self._waiting:
            if not suspect.admitted.done():
                suspect.admitted.set_exception(reason())


def cohort_size(suspects: int) -> int:
    """Return the most suspects that run together: the square root of those that wait.

    With cohorts of s, n suspects are cleared in n/s rounds, and each record that kills costs s more
    rounds.
    """
    return max(SMALLEST_COHORT, isqrt(suspects))
