"""Jobs of requests: found by their content, submitted once, and awaited by all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from pydantic import ValidationError

from dragoman_gateway.errors import BUSY, ApiError
from dragoman_gateway.glossaries.usable import UsableGlossary
from dragoman_gateway.keys import Key
from dragoman_gateway.rooms import Rooms
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
    glossary: UsableGlossary | None = None
    """The stored glossary that the fields name."""


QueuedAt = Callable[[str], Awaitable[datetime | None]]
Admit = Callable[[Asked, str], None]
"""Called before a job is published to a topic; raises ApiError where it may not be."""


class ContentJobs:
    """Answers jobs by their content. A client that leaves stops its wait, never the job."""

    def __init__(
        self,
        clients: Mapping[str, QueueClient],
        settings: ServeSettings,
        rooms: Rooms,
        *,
        queued_at: QueuedAt,
        admit: Admit,
    ) -> None:
        """`clients` by topic; the first is that of keys without a class."""
        self._clients = clients
        self._default = next(iter(clients))
        self._settings = settings
        self._rooms = rooms
        self._queued_at = queued_at
        self._admit = admit
        self._runs: dict[str, asyncio.Task[TranslationResult]] = {}

    async def result(self, asked: Asked) -> TranslationResult:
        """Return the result of a job, submitted if nobody did. Raises ApiError, DragomanError."""
        job, digest = self._job(asked)
        try:
            async with asyncio.timeout(self._settings.hold_s):
                return await self._awaited(asked, job, digest)
        except TimeoutError:
            raise ApiError(503, BUSY, 1) from None

    async def close(self) -> None:
        """End every wait, and publish nothing more."""
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        await asyncio.gather(*self._runs.values(), return_exceptions=True)

    def _job(self, asked: Asked) -> tuple[TranslationJob, str]:
        """Return the job, and its fingerprint."""
        digest = fingerprint(asked.fields)
        terms = asked.glossary.digest if asked.glossary else None
        job_id = content_id("gw.", digest, scope=asked.key.id, glossary=terms)
        deadline = datetime.now(UTC) + timedelta(seconds=self._deadline_s(asked))
        try:
            job = TranslationJob.model_validate(
                {
                    **asked.fields,
                    "job_id": job_id,
                    "ttl_s": self._settings.text_ttl_s,
                    "deadline": deadline,
                    "metadata": {"api": asked.api, "key": asked.key.id},
                }
            )
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=True)
            raise ApiError(400, sentence(problems)) from None
        return job, digest

    async def _awaited(self, asked: Asked, job: TranslationJob, digest: str) -> TranslationResult:
        """Return the result of the run that answers, which begins now if there is none."""
        if (run := self._runs.get(job.job_id)) is not None:
            return await asyncio.shield(run)
        topic = asked.key.topic or self._default
        client, expected = self._clients[topic], Expected(job.job_id, digest)
        status = expected.status_in(await client.state(job.job_id))
        waits = status is JobStatus.QUEUED and not await self._is_abandoned(job.job_id)
        if waits or status in {JobStatus.COMPLETED, JobStatus.RUNNING}:
            return await client.wait_for_result(expected, None)
        return await asyncio.shield(self._begun(asked, job, topic, again=status in _OVER))

    async def _is_abandoned(self, job_id: str) -> bool:
        since = await self._queued_at(job_id)
        return since is None or datetime.now(UTC) - since > timedelta(seconds=ABANDONED_S)

    def _begun(
        self, asked: Asked, job: TranslationJob, topic: str, *, again: bool
    ) -> asyncio.Task[TranslationResult]:
        """Return the run of a job, begun unless another request was faster."""
        run = self._runs.get(job.job_id)
        if run is None:
            work = self._run(asked, job, topic, again=again)
            run = self._runs[job.job_id] = asyncio.create_task(work, name=f"run {job.job_id}")
            run.add_done_callback(lambda done: self._end(job.job_id, done))
        return run

    async def _run(
        self, asked: Asked, job: TranslationJob, topic: str, *, again: bool
    ) -> TranslationResult:
        """Submit a job and wait for its end. It has room of its key for as long, whoever waits."""
        client = self._clients[topic]
        async with self._rooms.enter(asked.key, asked.characters):
            self._admit(asked, topic)
            if asked.glossary is not None:
                await asyncio.sleep(asked.glossary.wait_s)
            try:
                handle = await client.submit(job, resubmit=again, traceparent=asked.traceparent)
            except AlreadyCompleted:  # by another gateway, since its key was read
                handle = JobHandle(Expected(job.job_id), client)
            return await handle.result(self._deadline_s(asked))

    def _deadline_s(self, asked: Asked) -> float:
        return asked.key.deadline_s or self._settings.text_deadline_s

    def _end(self, job_id: str, run: asyncio.Task[TranslationResult]) -> None:
        del self._runs[job_id]
        if not run.cancelled():
            run.exception()  # those who waited have it
