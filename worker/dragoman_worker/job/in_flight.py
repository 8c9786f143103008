"""Which jobs is this worker working on? Exact duplicates share one run; cancels find their job."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from dragoman_schemas.results import TranslationResult
from dragoman_worker.ports import CancelNotice, Claim, Delivery

JobKey = tuple[str, str, int]
"""Job id, fingerprint, replay: records that agree in all three are exact duplicates."""


class Step(Enum):
    """What a job in hand is in. Its value is what metrics call it."""

    PERMIT = "permit"
    """Its first item waits for a permit."""
    CLAIM = "claim"
    ENGINE = "engine"
    SETTLE = "settle"


@dataclass(slots=True, eq=False)
class JobInFlight:
    """One job from the moment its record is read until it is settled or given up."""

    key: JobKey
    document_id: str | None
    delivery: Delivery | None = None
    claim: Claim | None = None
    released: bool = False
    """Its take was given back while the work goes on: another worker does the same work now."""
    cancelled: bool = False
    step: Step = Step.PERMIT
    since: float = field(default_factory=time.perf_counter)
    """When the step began, by `time.perf_counter`."""
    _scope: asyncio.Timeout | None = field(default=None, repr=False)
    _settled: asyncio.Future[TranslationResult | None] | None = field(default=None, repr=False)

    def settled(self) -> asyncio.Future[TranslationResult | None]:
        """For exact duplicates: the result once it is settled, None if the job was given up."""
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        return self._settled

    def leave(self, result: TranslationResult | None) -> None:
        """The job is let go: what waits for it goes on."""
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(result)

    def enter(self, step: Step) -> float:
        """Go on to the next step, and tell the seconds that the last one took."""
        now = time.perf_counter()
        took, self.step, self.since = now - self.since, step, now
        return took

    def run_in(self, scope: asyncio.Timeout) -> None:
        """From now on a cancel ends `scope`, and with it everything that runs inside."""
        self._scope = scope
        if self.cancelled:
            self._end_scope()

    def leave_scope(self) -> None:
        """From now on a cancel comes too late: the finish under way wins."""
        self._scope = None

    @property
    def running(self) -> bool:
        """Whether it runs in its scope now: its take stands, and its end is not being written."""
        return self._scope is not None

    def cancel(self) -> None:
        """Ask for the job's end. Idempotent."""
        self.cancelled = True
        self._end_scope()

    def _end_scope(self) -> None:
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())


class JobsInFlight:
    """The jobs in hand, by what records and cancellers call them. Event loop only."""

    def __init__(self) -> None:
        self._by_key: dict[JobKey, JobInFlight] = {}
        self.left = 0
        """Jobs let go so far: a sign of life."""

    def find(self, key: JobKey) -> JobInFlight | None:
        """The job that an exact duplicate should wait for."""
        return self._by_key.get(key)

    def enter(self, key: JobKey, document_id: str | None) -> JobInFlight:
        """Take a job in hand; its key must not be there."""
        job = self._by_key[key] = JobInFlight(key, document_id)
        return job

    def leave(self, job: JobInFlight, result: TranslationResult | None) -> None:
        """Let a job go: with its result once settled, with None if it was given up."""
        del self._by_key[job.key]
        self.left += 1
        job.leave(result)

    def cancel(self, notice: CancelNotice) -> int:
        """Cancel what a notice names and tell how many jobs in hand that were."""
        jobs = [job for job in self._by_key.values() if _named(job, notice)]
        for job in jobs:
            job.cancel()
        return len(jobs)

    def unsettled_s(self) -> float:
        """How long the oldest job whose work is done has waited for its end to be written."""
        now = time.perf_counter()
        waiting = (job.since for job in self._by_key.values() if job.step is Step.SETTLE)
        return now - min(waiting, default=now)

    def claims(self) -> Iterator[Claim]:
        """The claims that are outstanding: what a drain must release."""
        jobs = self._by_key.values()
        return (job.claim for job in jobs if job.claim is not None and not job.released)

    def lost(self, still_assigned: Callable[[Delivery], bool]) -> list[JobInFlight]:
        """Running jobs whose partition has gone, with a claim that nobody has given back."""
        return [
            job
            for job in self._by_key.values()
            if job.running
            and not job.released
            and job.delivery
            and not still_assigned(job.delivery)
        ]

    def steps(self) -> Iterator[tuple[Step, float]]:
        """What each job is in, and since when."""
        return ((job.step, job.since) for job in self._by_key.values())

    def by_topic(self) -> Counter[str]:
        """How many there are of each topic."""
        return Counter(job.delivery.topic for job in self._by_key.values() if job.delivery)

    def __len__(self) -> int:
        return len(self._by_key)


def _named(job: JobInFlight, notice: CancelNotice) -> bool:
    if notice.job_id is not None:
        return job.key[0] == notice.job_id
    return notice.document_id is not None and job.document_id == notice.document_id
