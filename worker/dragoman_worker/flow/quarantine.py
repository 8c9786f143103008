"""Turns of suspects in the engine: a cohort of them, or one by itself, and nobody else.

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
"""Suspects that may run together, however few there are."""


@dataclass(slots=True, eq=False)
class Member:
    """One suspect in quarantine; `admitted` is set when its turn begins."""

    line: str
    by_itself: bool
    admitted: asyncio.Future[None]


class Quarantine:
    """The suspects that wait for a turn, and those of the turn that is under way."""

    def __init__(self) -> None:
        self._waiting: dict[Member, None] = {}
        self._inside: set[Member] = set()
        self._lines: Counter[str] = Counter()
        self._cohort: int | None = None
        """How many the turn under way has admitted, if it is a cohort's."""
        self._finishing: frozenset[str] = frozenset()
        """Lines of others that may enter during the turn under way."""

    @property
    def waiting(self) -> int:
        """Suspects that wait for a turn."""
        return len(self._waiting)

    @property
    def inside(self) -> int:
        """Suspects of the turn that is under way; 0 if there is none."""
        return len(self._inside)

    @property
    def lines(self) -> Container[str]:
        """Lines that may enter during the turn under way."""
        return self._finishing.union(self._lines) if self._finishing else self._lines

    def holds(self, line: str) -> bool:
        """Whether a suspect of this line is inside."""
        return line in self._lines

    def let_finish(self, lines: Iterable[str]) -> None:
        """Until the turn under way ends, these lines may enter too."""
        self._finishing = frozenset(lines)

    def join(self, line: str, *, by_itself: bool) -> Member:
        """Wait for a turn, behind those who wait already."""
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        member = Member(line, by_itself, admitted)
        self._waiting[member] = None
        return member

    def leave(self, member: Member) -> bool:
        """Leave, admitted or not, and return whether that ended a turn. Exactly once."""
        if member not in self._inside:
            del self._waiting[member]
            return False
        self._inside.remove(member)
        self._lines[member.line] -= 1
        self._lines += Counter()  # drops the lines of nobody
        if self._inside:
            return False
        self._cohort = None
        self._finishing = frozenset()
        return True

    def begin_turn(self) -> None:
        """Admit the first who waits, and others with it if it may run in a cohort."""
        if self._inside or (first := next(self._ready(), None)) is None:
            return
        self._cohort = None if first.by_itself else 0
        if first.by_itself:
            self._admit(first)
        self.fill_cohort()

    def fill_cohort(self) -> None:
        """Admit to the cohort under way, up to its size in all, who came too late for its start."""
        if self._cohort is None or self._cohort >= cohort_size(self._cohort + len(self._waiting)):
            return
        ready = [member for member in self._ready() if not member.by_itself]
        capacity = cohort_size(self._cohort + len(ready)) - self._cohort
        for member in ready[:capacity]:
            self._cohort += 1
            self._admit(member)

    def _ready(self) -> Iterator[Member]:
        return (member for member in self._waiting if not member.admitted.done())

    def _admit(self, member: Member) -> None:
        del self._waiting[member]
        self._inside.add(member)
        self._lines[member.line] += 1
        member.admitted.set_result(None)

    def turn_away(self, reason: type[Exception]) -> None:
        """Raise `reason` in all who wait; those inside go on."""
        for member in self._waiting:
            if not member.admitted.done():
                member.admitted.set_exception(reason())


def cohort_size(suspects: int) -> int:
    """The most suspects that run together: n/s rounds clear n, and s more find each poison."""
    return max(SMALLEST_COHORT, isqrt(suspects))
