"""How does a program follow one job? By its handle, which any process can make from the id."""

from __future__ import annotations

import re
from typing import Final, Protocol

from dragoman_producer.errors import TranslationRejected
from dragoman_producer.state import Expected, JobState
from dragoman_schemas.jobs import DOCUMENT_ID_PATTERN, JOB_ID_PATTERN
from dragoman_schemas.results import JobStatus, TranslationResult

_JOB_ID: Final = re.compile(JOB_ID_PATTERN)
_DOCUMENT_ID: Final = re.compile(DOCUMENT_ID_PATTERN)


class Jobs(Protocol):
    """Where handles read. Every method may raise StoreUnreachable and StoreRefused."""

    async def state(self, job_id: str) -> JobState | None:
        """What the job's key says now; None if there is no key."""
        ...

    async def end(self, expected: Expected, timeout_s: float | None) -> TranslationResult:
        """Wait for the expected run's terminal state.

        Raises ResultTimeout, IdTaken, and ClientClosed if the client ends first.
        """
        ...

    async def cancel_job(self, job_id: str) -> JobStatus:
        """Cancel a job and answer the status it has then; idempotent."""
        ...


def check_job_id(job_id: str) -> str:
    """The id, if a job can have it. Raises ValueError."""
    if not _JOB_ID.match(job_id):
        raise ValueError(f"{job_id[:40]!r} is not a job id: 1-128 of A-Z a-z 0-9 . _ : -")
    return job_id


def check_document_id(document_id: str) -> str:
    """The id, if a document can have it. Raises ValueError."""
    if not _DOCUMENT_ID.match(document_id):
        raise ValueError(f"{document_id[:40]!r} is not a document id: 1-110 of A-Z a-z 0-9 . _ : -")
    return document_id


class JobHandle:
    """One job, by its id. Handles are cheap, hold no connection and need no closing."""

    __slots__ = ("_expected", "_jobs")

    def __init__(self, expected: Expected, jobs: Jobs) -> None:
        self._expected = expected
        self._jobs = jobs

    def __repr__(self) -> str:
        return f"JobHandle({self.job_id!r})"

    @property
    def job_id(self) -> str:
        """The id the job was submitted under."""
        return self._expected.job_id

    @property
    def replay(self) -> int:
        """Which run this handle follows: 0, or the number of the replay that ``again`` asked."""
        return self._expected.replay

    @property
    def already(self) -> JobStatus | None:
        """The status that the id had when it was submitted; None for a new job or a new run.

        One that was failed, cancelled or expired stays so: only ``again`` runs it once more.
        """
        return self._expected.already

    async def status(self) -> JobStatus | None:
        """The job's status; None is unknown: never submitted, or past its TTL.

        Raises IdTaken if another payload owns the id, and StoreUnreachable.
        """
        return self._expected.status_in(await self._jobs.state(self.job_id))

    async def result(self, timeout_s: float | None = None) -> TranslationResult:
        """The result, whatever its terminal status, as soon as there is one.

        Neither polls busily nor misses a result; 10,000 handles may wait at once. A Redis that
        comes back within ``connect_timeout_s`` costs latency only. ``timeout_s`` 0 looks once,
        None waits as long as it takes. Raises ResultTimeout, IdTaken, StoreUnreachable.
        """
        return await self._jobs.end(self._expected, timeout_s)

    async def texts(self, timeout_s: float | None = None) -> list[str]:
        """The translations of all items, in order.

        Raises TranslationRejected if one has none, and what ``result`` raises.
        """
        result = await self.result(timeout_s)
        texts = [item.text for item in result.translations if item.text is not None]
        complete = bool(texts) and len(texts) == len(result.translations)
        if result.status != JobStatus.COMPLETED.value or not complete:
            raise TranslationRejected(result)
        return texts

    async def text(self, timeout_s: float | None = None) -> str:
        """The translation; of several items, one a line. Raises what ``texts`` raises."""
        return "\n".join(await self.texts(timeout_s))

    async def cancel(self) -> JobStatus:
        """Ask that the job not be run, and answer its status then.

        ``cancelled`` if no worker had it; ``running`` if one has, which aborts it soon; a terminal
        status if it had already ended, which stays. Raises IdTaken, and cancels nothing, if another
        payload owns the id.
        """
        await self.status()
        return await self._jobs.cancel_job(self.job_id)
