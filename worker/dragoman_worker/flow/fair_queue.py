"""Fair queue of the items that wait for the engine: weighted by class, round-robin by job.

Pure: no I/O and no clock. Classes are served by start-time fair queueing (Goyal, Vin and Cheng,
1996). While two priority classes wait, their service divided by their weight differs by at most one
entry of each. A class that was idle starts at the present virtual time: it has neither credit nor
debt.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Entry = TypeVar("Entry")


@dataclass(slots=True, eq=False)
class _PriorityClass(Generic[Entry]):
    weight: int
    next_start: float = 0.0
    """Virtual time at which the next entry is served: cost served so far, divided by the weight."""
    jobs: OrderedDict[str, deque[Entry]] = field(default_factory=OrderedDict)
    """Waiting entries by job, in the order in which the jobs are served."""


class Queued(NamedTuple, Generic[Entry]):
    """One waiting entry and its position: the priority class and the job."""

    priority: str
    job: str
    entry: Entry


class FairQueue(Generic[Entry]):
    """Entries in one FIFO queue per job, and the jobs in priority classes.

    Classes are served by weight, the jobs of a class in rotation. The caller decides what an entry
    costs, and whether the first entry may be served now.
    """

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        """Start empty. `weights` of classes are at least 1; a class that is not named weighs 1."""
        heaviest_first = sorted((weights or {}).items(), key=lambda priority: -priority[1])
        self._classes: dict[str, _PriorityClass[Entry]] = {
            name: _PriorityClass(each) for name, each in heaviest_first
        }
        self._waiting = 0
        self._virtual_time = 0.0

    def join(self, priority: str, job: str, entry: Entry, *, first: bool = False) -> None:
        """Append an entry to the queue of its job, or put it `first` there."""
        there = self._classes.get(priority)
        if there is None:
            there = self._classes[priority] = _PriorityClass(1)
        if not there.jobs:
            there.next_start = max(there.next_start, self._virtual_time)
        entries = there.jobs.setdefault(job, deque())
        if first:
            entries.appendleft(entry)
        else:
            entries.append(entry)
        self._waiting += 1

    def first(self, among: Container[str] | None = None) -> Queued[Entry] | None:
        """Return the entry to serve next, of all jobs or only of those in `among`; None if none."""
        best: Queued[Entry] | None = None
        start = 0.0
        for name, there in self._classes.items():
            if not there.jobs or (best is not None and there.next_start >= start):
                continue
            job = _first_job(there.jobs, among)
            if job is not None:
                best, start = Queued(name, job, there.jobs[job][0]), there.next_start
        return best

    def serve(self, queued: Queued[Entry], cost: float) -> None:
        """Remove the entry that `first` returned, charge its class and move its job to the end."""
        there = self._classes[queued.priority]
        self._virtual_time = there.next_start
        there.next_start += cost / there.weight
        entries = there.jobs[queued.job]
        entries.popleft()
        self._waiting -= 1
        if entries:
            there.jobs.move_to_end(queued.job)
        else:
            del there.jobs[queued.job]

    def leave(self, priority: str, job: str, entry: Entry) -> bool:
        """Remove a waiting entry without serving it; return whether it was waiting."""
        there = self._classes.get(priority)
        entries = there.jobs.get(job) if there is not None else None
        if there is None or entries is None or entry not in entries:
            return False
        entries.remove(entry)
        self._waiting -= 1
        if not entries:
            del there.jobs[job]
        return True

    def all(self) -> Iterator[Queued[Entry]]:
        """Return every waiting entry at the time of the call, in no order."""
        return iter(
            [
                Queued(priority, job, entry)
                for priority, there in self._classes.items()
                for job, entries in there.jobs.items()
                for entry in entries
            ]
        )

    def waiting(self, priority: str) -> int:
        """Return the number of entries that wait in a priority class."""
        there = self._classes.get(priority)
        return sum(map(len, there.jobs.values())) if there is not None else 0

    def __len__(self) -> int:
        return self._waiting


def _first_job(jobs: Iterable[str], among: Container[str] | None) -> str | None:
    if among is None:
        return next(iter(jobs), None)
    return next((job for job in jobs if job in among), None)
