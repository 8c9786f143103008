"""The jobs in flight: one record per job, from the read of its envelope until it is settled.

Exact duplicates share one run, and a cancel finds its job.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from dragoman_schemas.jobs import DocumentRef, TranslationJob
from dragoman_schemas.readable import readable_document, readable_ttl_s
from dragoman_schemas.results import TranslationResult
from dragoman_schemas.scripts import ClaimAnswer
from dragoman_schemas.wire import Envelope
from dragoman_worker.errors import Internal, JobError
from dragoman_worker.flow.permits import Permit
from dragoman_worker.job.opening import Opening
from dragoman_worker.job.plan import Plan
from dragoman_worker.ports import CancelNotice, Claim, Delivery
from dragoman_worker.tracing import Trace

JobKey = tuple[str, str, int]
"""Job id, fingerprint, replay: records that agree in all three are exact duplicates."""
_DEFAULT_TTL_S: Final = 86_400
_NOT_PLANNED: Final = Internal("the job was not planned")
_RUN_IS_OVER: Final = Internal("the run of the job is over")


class Step(Enum):
    """What a job in flight is doing. The value is the metric label."""

    PERMIT = "permit"
    """Its first item waits for a permit."""
    CLAIM = "claim"
    ENGINE = "engine"
    SETTLE = "settle"


_CLAIMED: Final = frozenset({Step.ENGINE, Step.SETTLE})


@dataclass(slots=True, eq=False)
class JobInFlight:
    """All that is known of one job, from the read of its envelope until it is settled."""

    delivery: Delivery
    envelope: Envelope
    replay: int
    document_id: str | None
    opening: Opening
    key: JobKey = field(init=False)
    decoded: TranslationJob | None = None
    """The job as its record describes it; None if the record is no valid job."""
    prepared: Plan | JobError = _NOT_PLANNED
    """The plan, or why the job fails or expires without one."""
    permit: Permit | None = None
    """The permit of the first request, between admission and the run."""
    claim: Claim | None = None
    answer: ClaimAnswer | None = None
    """What the last `claim` script answered."""
    engine_s: float = 0.0
    """Seconds from the first request's start in the engine to the end of the run."""
    released: bool = False
    """Whether the claim was released while the work goes on: the partition moved to another
    worker, which does the same job now."""
    cancelled: bool = False
    step: Step = Step.PERMIT
    since: float = 0.0
    """When the step began, by `time.perf_counter`."""
    trace: Trace | None = None
    """The trace that the delivery belongs to."""
    _span_name: str = "prepare"
    """Of the step that a trace records next."""
    _scope: asyncio.Timeout | None = field(default=None, repr=False)
    _settled: asyncio.Future[TranslationResult | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.key = (self.envelope.job_id, self.envelope.fingerprint, self.replay)

    @property
    def plan(self) -> Plan | None:
        """The plan; None if there is none."""
        return self.prepared if isinstance(self.prepared, Plan) else None

    @property
    def document(self) -> DocumentRef | None:
        """The job's place in a document, as far as the record can be read.

        An invalid record counts towards its document too: its progress would never be complete.
        """
        if self.decoded is not None:
            return self.decoded.document
        return readable_document(self.envelope.fields)

    @property
    def ttl_s(self) -> int:
        """Seconds for which the result is kept, as far as the record can be read."""
        decoded = self.decoded
        ttl_s = readable_ttl_s(self.envelope.fields) if decoded is None else decoded.ttl_s
        return _DEFAULT_TTL_S if ttl_s is None else ttl_s

    def settled(self) -> asyncio.Future[TranslationResult | None]:
        """Return a future of the result that exact duplicates may share; None if there is none.

        Made on the first call, because few jobs have duplicates.
        """
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        return self._settled

    def drop_work(self) -> None:
        """Free the job and its plan: an outage may delay the settlement for long."""
        self.envelope = self.envelope._replace(fields={})
        self.decoded, self.answer, self.prepared = None, None, _RUN_IS_OVER

    def leave(self, result: TranslationResult | None) -> None:
        """Wake the duplicates that wait for the job."""
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(result)

    def enter(self, step: Step) -> float:
        """Begin the next step and return the seconds that the last one took."""
        now = time.perf_counter()
        if self.trace is not None:
            self.trace.step(self._span_name, self.since, now)
            self._span_name = step.value
        took, self.step, self.since = now - self.since, step, now
        return took

    def run_in(self, scope: asyncio.Timeout) -> None:
        """Let a cancel expire `scope` from now on, and with it everything that runs inside."""
        self._scope = scope
        if self.cancelled:
            self._expire_scope()

    def leave_scope(self) -> None:
        """Ignore cancels from now on: the finish under way wins."""
        self._scope = None

    @property
    def running(self) -> bool:
        """Whether the job is claimed and its result is not being written yet."""
        return self._scope is not None

    def cancel(self) -> None:
        """Request the abort of the job. Idempotent."""
        self.cancelled = True
        self._expire_scope()

    def _expire_scope(self) -> None:
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())


class JobsInFlight:
    """The jobs in flight of one worker, by key. Event loop only."""

    def __init__(self) -> None:
        self._by_key: dict[JobKey, JobInFlight] = {}
        self.left = 0
        """Jobs settled or released so far, which shows that work makes progress."""

    def find(self, key: JobKey) -> JobInFlight | None:
        """Return the job that an exact duplicate waits for."""
        return self._by_key.get(key)

    def enter(self, job: JobInFlight) -> None:
        """Add a job; its key must not be present. Its first step begins now."""
        job.since = time.perf_counter()
        self._by_key[job.key] = job

    def leave(self, job: JobInFlight, result: TranslationResult | None) -> None:
        """Remove a job with the result that duplicates may share, None if there is none."""
        del self._by_key[job.key]
        self.left += 1
        job.leave(result)

    def cancel(self, notice: CancelNotice) -> int:
        """Cancel the jobs that a notice names and return how many there were."""
        jobs = [job for job in self._by_key.values() if _is_named(job, notice)]
        for job in jobs:
            job.cancel()
        return len(jobs)

    def unsettled_s(self) -> float:
        """Return for how many seconds the oldest finished job has waited for its settlement."""
        now = time.perf_counter()
        waiting = (job.since for job in self._by_key.values() if job.step is Step.SETTLE)
        return now - min(waiting, default=now)

    def claims(self) -> Iterator[Claim]:
        """Return the outstanding claims, which a drain must release."""
        jobs = self._by_key.values()
        return (job.claim for job in jobs if job.claim is not None and not job.released)

    def lost(self, still_assigned: Callable[[Delivery], bool]) -> list[JobInFlight]:
        """Return the claimed jobs whose partition is gone and whose claim is not released.

        Also those that wait to be settled, which an outage may delay while partitions move on. A
        claim under way is left alone: released before it arrives, it would stay.
        """
        return [
            job
            for job in self._by_key.values()
            if job.step in _CLAIMED and not job.released and not still_assigned(job.delivery)
        ]

    def steps(self) -> Iterator[tuple[Step, float]]:
        """Return each job's step and when it began, by `time.perf_counter`."""
        return ((job.step, job.since) for job in self._by_key.values())

    def by_topic(self) -> Counter[str]:
        """Return the number of jobs per topic."""
        return Counter(job.delivery.topic for job in self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)


def _is_named(job: JobInFlight, notice: CancelNotice) -> bool:
    if notice.job_id is not None:
        return job.envelope.job_id == notice.job_id
    return notice.document_id is not None and job.document_id == notice.document_id
