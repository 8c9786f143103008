"""Handle of one job, which any process can make from the job's id."""

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
    """Job states for handles; every method may raise StoreUnreachable and StoreRefused."""

    async def state(self, job_id: str) -> JobState | None:
        """Return the current state of the job's key; None if there is no key."""
        ...

    async def wait_for_result(
        self, expected: Expected, timeout_s: float | None
    ) -> TranslationResult:
        """Wait for the expected run's terminal state.

        Raises ResultTimeout, IdTaken, and ClientClosed if the client is closed first.
        """
        ...

    async def cancel_job(self, job_id: str) -> JobStatus:
        """Cancel a job and return its status after that; idempotent."""
        ...


def check_job_id(job_id: str) -> str:
    """Return the id if it is a valid job id, else raise ValueError."""
    if not _JOB_ID.match(job_id):
        raise ValueError(f"{job_id[:40]!r} is not a job id: 1-128 of A-Z a-z 0-9 . _ : -")
    return job_id


def check_document_id(document_id: str) -> str:
    """Return the id if it is a valid document id, else raise ValueError."""
    if not _DOCUMENT_ID.match(document_id):
        raise ValueError(f"{document_id[:40]!r} is not a document id: 1-110 of A-Z a-z 0-9 . _ : -")
    return document_id


class JobHandle:
    """One job by its id. Handles are cheap, hold no connection and need no closing."""

    __slots__ = ("_expected", "_jobs")

    def __init__(self, expected: Expected, jobs: Jobs) -> None:
        self._expected = expected
        self._jobs = jobs

    def __repr__(self) -> str:
        return f"JobHandle({self.job_id!r})"

    @property
    def job_id(self) -> str:
        """Id of the job."""
        return self._expected.job_id

    @property
    def replay(self) -> int:
        """Run that this handle follows: 0, or the number of the replay that ``resubmit`` began."""
        return self._expected.replay

    @property
    def already(self) -> JobStatus | None:
        """Status that the id had at submission; None for a new job or a new run.

        A failed, cancelled or expired job keeps its status: only ``resubmit`` runs it again.
        """
        return self._expected.already

    async def status(self) -> JobStatus | None:
        """Return the job's status; None is unknown: never submitted, or past its TTL.

        Raises IdTaken if another payload owns the id, and StoreUnreachable.
        """
        return self._expected.status_in(await self._jobs.state(self.job_id))

    async def result(self, timeout_s: float | None = None) -> TranslationResult:
        """Wait for the job's terminal state and return its result, whatever the status.

        Up to 10,000 handles may wait at once; none polls busily or misses a result. A Redis outage
        shorter than ``connect_timeout_s`` costs latency only. ``timeout_s`` 0 reads once, None
        waits without a limit. Raises ResultTimeout, IdTaken, StoreUnreachable.
        """
        return await self._jobs.wait_for_result(self._expected, timeout_s)

    async def texts(self, timeout_s: float | None = None) -> list[str]:
        """Wait for the result and return the translations of all items, in order.

        Raises TranslationRejected if an item has no translation, and the errors of ``result``.
        """
        result = await self.result(timeout_s)
        texts = [item.text for item in result.translations if item.text is not None]
        complete = bool(texts) and len(texts) == len(result.translations)
        if result.status != JobStatus.COMPLETED.value or not complete:
            raise TranslationRejected(result)
        return texts

    async def text(self, timeout_s: float | None = None) -> str:
        """Wait for the translation; several items are joined by newlines. Raises as ``texts``."""
        return "\n".join(await self.texts(timeout_s))

    async def cancel(self) -> JobStatus:
        """Cancel the job and return its status after that.

        The status is ``cancelled`` if no worker had claimed the job, ``running`` if a worker will
        abort it soon, or the terminal status that it already had and keeps. Raises IdTaken, and
        cancels nothing, if another payload owns the id.
        """
        await self.status()
        return await self._jobs.cancel_job(self.job_id)
