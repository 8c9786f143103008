"""Many jobs submitted in bounded memory: equal lines once, and what was refused by cause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from dragoman_producer.client import TranslationClient
from dragoman_producer.errors import SubmitFailed
from dragoman_producer.handle import JobHandle
from dragoman_producer.operations.causes import Causes
from dragoman_producer.operations.outage import Outage
from dragoman_producer.operations.seen import SeenLines
from dragoman_producer.window import in_order
from dragoman_schemas.content_ids import LINE_PREFIX, content_id
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import JobStatus
from dragoman_schemas.wire import encode_job, open_record

UNACKNOWLEDGED: Final = 1_000
OUTSTANDING: Final = 10_000
"""Jobs that were submitted and have no result yet, where results are waited for."""
_ENDED: Final = frozenset({JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.EXPIRED})

GlossaryDigest = Callable[[str], Awaitable[str | None]]
"""Returns the digest of a stored glossary by its name, None if there is none."""


class JobLine(NamedTuple):
    """A job to submit. One without an id of its own gets the id of its content."""

    job: TranslationJob
    has_id: bool = True


class Submitted(NamedTuple):
    """A line whose job is known to Kafka; `is_equal` if an earlier line was the same job."""

    handle: JobHandle
    is_equal: bool = False


class BulkSubmission:
    """Submits lines, at most UNACKNOWLEDGED at once."""

    def __init__(
        self,
        client: TranslationClient,
        glossary_digest: GlossaryDigest,
        refuse: Callable[[SubmitFailed], None],
        outage: Outage,
        *,
        resubmit: bool = False,
    ) -> None:
        """`refuse` is called with each job that is not submitted."""
        self._client = client
        self._glossary_digest = glossary_digest
        self._refuse = refuse
        self._outage = outage
        self._resubmit = resubmit
        self._seen = SeenLines()
        self._reopened: set[str] = set()
        self._begun: dict[str, asyncio.Event] = {}
        self._glossaries: dict[str, asyncio.Future[str | None]] = {}
        self.published = self.equal = self.completed = 0
        self.ended = Causes()
        """Jobs that had ended without translation before, and do not run again."""

    async def submitted(self, lines: Iterable[JobLine]) -> AsyncGenerator[Submitted]:
        """Yield each line once Kafka has acknowledged its job, in the order of the lines.

        An outage delays them. Raises the errors that concern all jobs, such as Unreachable.
        """
        async for outcome in in_order(lines, self._attempt, in_flight=UNACKNOWLEDGED):
            if isinstance(outcome, SubmitFailed):
                self._refuse(outcome)
                continue
            self._count(outcome)
            yield outcome

    def _count(self, found: Submitted) -> None:
        already = found.handle.already
        if found.is_equal:
            self.equal += 1
        elif already is JobStatus.COMPLETED:
            self.completed += 1
        elif already in _ENDED:
            self.ended.add(str(already), found.handle.job_id)
        else:
            self.published += 1

    async def _attempt(self, line: JobLine) -> Submitted | SubmitFailed:
        try:
            return await self._submit(line)
        except SubmitFailed as refused:
            return refused

    async def _submit(self, line: JobLine) -> Submitted:
        job = line.job if line.has_id else await self._identified(line.job)
        is_new = self._seen.add(encode_job(job) if line.has_id else job.job_id.encode())
        if not is_new and await self._has_key(job.job_id):
            return Submitted(self._client.job(job.job_id), is_equal=True)
        begun = self._begun[job.job_id] = asyncio.Event()
        try:
            return Submitted(await self._outage.over(partial(self._published, job)))
        finally:
            begun.set()
            self._begun.pop(job.job_id, None)

    async def _published(self, job: TranslationJob) -> JobHandle:
        return await self._client.submit(
            job, resubmit=self._resubmit, reopened=self._reopened, skip_completed=True
        )

    async def _has_key(self, job_id: str) -> bool:
        """Return whether an earlier line has made a key; its submission may be under way."""
        if (begun := self._begun.get(job_id)) is not None:
            await begun.wait()
        return await self._outage.over(partial(self._client.state, job_id)) is not None

    async def _identified(self, job: TranslationJob) -> TranslationJob:
        """Return the job with the id of its content."""
        fingerprint = open_record(encode_job(job)).fingerprint
        digest = None if job.glossary_id is None else await self._digest(job.glossary_id)
        made = content_id(LINE_PREFIX, fingerprint, glossary=digest)
        return job.model_copy(update={"job_id": made})

    async def _digest(self, name: str) -> str | None:
        if name not in self._glossaries:
            self._glossaries[name] = asyncio.ensure_future(self._glossary_digest(name))
        return await asyncio.shield(self._glossaries[name])
