"""Jobs of requests: found by their content, submitted once, and awaited by all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from pydantic import ValidationError

from dragoman_gateway.errors import BUSY, ApiError
from dragoman_gateway.keys import Key
from dragoman_gateway.settings import ServeSettings
from dragoman_producer.errors import AlreadyCompleted
from dragoman_producer.handle import JobHandle, Jobs
from dragoman_producer.state import Expected
from dragoman_schemas.content_ids import content_id
from dragoman_schemas.fingerprint import fingerprint
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.problems import sentence
from dragoman_schemas.results import JobStatus, TranslationResult

ABANDONED_S: Final = 60.0
"""Age of a queued job that its gateway may have died before publishing."""
_OVER: Final = frozenset({JobStatus.FAILED, JobStatus.EXPIRED, JobStatus.CANCELLED})


class QueueClient(Jobs, Protocol):
    """What is needed of a TranslationClient."""

    async def submit(
        self,
        job: TranslationJob,
        *,
        resubmit: bool = False,
        traceparent: str | None = None,
    ) -> JobHandle: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that a request asks for: its content, for whom, and where its trace goes."""

    fields: Mapping[str, Any]
    characters: int
    key: Key
    api: str
    traceparent: str | None = None
    glossary_digest: str | None = None


QueuedAt = Callable[[str], Awaitable[datetime | None]]
Admit = Callable[[Asked, str], None]
"""Called before a job is published to a topic; raises ApiError where it may not be."""


class ContentJobs:
    """Answers jobs by their content. A client that leaves stops its wait, never the job."""

    def __init__(
        self,
        clients: Mapping[str, QueueClient],
        settings: ServeSettings,
        *,
        queued_at: QueuedAt,
        admit: Admit,
    ) -> None:
        """`clients` by topic; the first is that of keys without a class."""
        self._clients = clients
        self._default = next(iter(clients))
        self._settings = settings
        self._queued_at = queued_at
        self._admit = admit
        self._runs: dict[str, asyncio.Task[JobHandle]] = {}
        self._drops: dict[str, asyncio.TimerHandle] = {}

    async def result(self, asked: Asked) -> TranslationResult:
        """Return the result of a job, submitted if nobody did. Raises ApiError, DragomanError."""
        job, digest = self._job(asked)
        until = asyncio.get_running_loop().time() + self._settings.hold_s
        try:
            async with asyncio.timeout_at(until):
                handle = await self._found(asked, job, digest)
        except TimeoutError:
            raise ApiError(503, BUSY, 1) from None
        result = await handle.result(until - asyncio.get_running_loop().time())
        self._drop(job.job_id)
        return result

    async def close(self) -> None:
        """End every wait, and publish nothing more."""
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        for job_id in list(self._runs):
            self._drop(job_id)

    def _job(self, asked: Asked) -> tuple[TranslationJob, str]:
        """Return the job, and its fingerprint."""
        digest = fingerprint(asked.fields)
        job_id = content_id("gw.", digest, scope=asked.key.id, glossary=asked.glossary_digest)
        within = asked.key.deadline_s or self._settings.text_deadline_s
        try:
            job = TranslationJob.model_validate(
                {
                    **asked.fields,
                    "job_id": job_id,
                    "ttl_s": self._settings.text_ttl_s,
                    "deadline": datetime.now(UTC) + timedelta(seconds=within),
                    "metadata": {"api": asked.api, "key": asked.key.id},
                }
            )
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=True)
            raise ApiError(400, sentence(problems)) from None
        return job, digest

    async def _found(self, asked: Asked, job: TranslationJob, digest: str) -> JobHandle:
        """Return the handle of the run that answers, which begins now if there is none."""
        if (run := self._runs.get(job.job_id)) is not None:
            return await asyncio.shield(run)
        topic = asked.key.topic or self._default
        client = self._clients[topic]
        expected = Expected(job.job_id, digest)
        status = expected.status_in(await client.state(job.job_id))
        if status in {JobStatus.COMPLETED, JobStatus.RUNNING}:
            return JobHandle(expected, client)
        if status is JobStatus.QUEUED and not await self._is_abandoned(job.job_id):
            return JobHandle(expected, client)
        return await self._submitted(asked, job, topic, resubmit=status in _OVER)

    async def _is_abandoned(self, job_id: str) -> bool:
        since = await self._queued_at(job_id)
        return since is None or datetime.now(UTC) - since > timedelta(seconds=ABANDONED_S)

    async def _submitted(
        self, asked: Asked, job: TranslationJob, topic: str, *, resubmit: bool
    ) -> JobHandle:
        if (run := self._runs.get(job.job_id)) is None:  # another request was not faster
            self._admit(asked, topic)
            run = asyncio.create_task(
                self._publish(self._clients[topic], job, asked.traceparent, resubmit=resubmit),
                name=f"publish {job.job_id}",
            )
            self._runs[job.job_id] = run
            run.add_done_callback(lambda done: self._forget_failed(job.job_id, done))
            within = asked.key.deadline_s or self._settings.text_deadline_s
            self._drops[job.job_id] = asyncio.get_running_loop().call_later(
                within, self._drop, job.job_id
            )
        return await asyncio.shield(run)

    async def _publish(
        self, client: QueueClient, job: TranslationJob, traceparent: str | None, *, resubmit: bool
    ) -> JobHandle:
        try:
            return await client.submit(job, resubmit=resubmit, traceparent=traceparent)
        except AlreadyCompleted:  # by another gateway, since its key was read
            return JobHandle(Expected(job.job_id), client)

    def _forget_failed(self, job_id: str, run: asyncio.Task[JobHandle]) -> None:
        if run.cancelled() or run.exception() is not None:
            self._drop(job_id)

    def _drop(self, job_id: str) -> None:
        self._runs.pop(job_id, None)
        if (timer := self._drops.pop(job_id, None)) is not None:
            timer.cancel()
