"""How does a program hand texts over for translation? It submits jobs and follows their handles."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from types import TracebackType
from typing import Any, Final, Self

from dragoman_connections.settings import DragomanSettings, SettingsError, load_settings
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable, ClientClosed, JobTooLarge
from dragoman_producer.handle import JobHandle, check_document_id, check_job_id
from dragoman_producer.publisher import Publisher, RecordTooLarge
from dragoman_producer.refusal import Refusal, record_refusal
from dragoman_producer.state import Expected, JobState
from dragoman_producer.store import JobStore
from dragoman_producer.submission import resubmitted, submit_each
from dragoman_producer.watch import ResultWatch
from dragoman_schemas import names
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.wire import encode_job, open_record

IN_FLIGHT: Final = 1000


class TranslationClient:
    """Submits jobs to Kafka and reads their states and results from Redis.

    ::

        async with TranslationClient("127.0.0.1:9092", "redis://127.0.0.1:6379") as client:
            handle = await client.submit(TranslationJob(job_id="a1", text="Hi.", target_lang="de"))
            print(await handle.text(timeout_s=30))

    What is not given comes from the environment (DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS, ...) or the
    defaults. Nothing is contacted before it is needed: a client that only reads needs no broker.
    """

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        redis_url: str | None = None,
        topic: str | None = None,
        *,
        settings: DragomanSettings | None = None,
    ) -> None:
        """Raises SettingsError; contacts nothing. ``settings`` replaces the environment."""
        self._settings = _settled(settings, bootstrap_servers, redis_url, topic)
        self._topic = self._settings.kafka.topic_names[0]
        timeout_s = self._settings.connect_timeout_s
        self._publisher = Publisher(self._settings.kafka, connect_timeout_s=timeout_s)
        self._store = JobStore(self._settings.redis, connect_timeout_s=timeout_s)
        self._watch = ResultWatch(self._store)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every wait, connection and task; what was submitted is not affected."""
        self._closed = True
        await self._watch.close()
        await self._publisher.close()
        await self._store.close()

    # --- submitting -----------------------------------------------------------------------------

    async def submit(
        self, job: TranslationJob, *, again: bool = False, traceparent: str | None = None
    ) -> JobHandle:
        """Publish one job and return once Kafka has acknowledged it.

        Submitting the same job twice is harmless: there is one result. ``again`` runs a failed,
        cancelled or expired job once more. ``traceparent`` (W3C) travels as a header. A
        cancellation of the job's document no longer holds.

        Raises SubmitFailed for what is wrong with this job (JobTooLarge, IdTaken, BrokenKey,
        AlreadyCompleted, ReplaysUsedUp), Unreachable, BrokerRefused and StoreRefused. After an
        Unreachable the job may have arrived all the same; submit it again.
        """
        return await self._submit(job, set(), again=again, traceparent=traceparent)

    async def _submit(
        self,
        job: TranslationJob,
        reopened: set[str],
        *,
        again: bool,
        traceparent: str | None = None,
    ) -> JobHandle:
        """``reopened``: documents that this submission has reopened, to which it adds."""
        self._check_open()
        value = encode_job(job)
        expected = Expected(job.job_id, open_record(value).fingerprint)
        document_id = job.document.document_id if job.document else None
        if document_id in reopened:
            document_id = None
        elif document_id is not None:
            reopened.add(document_id)
        created = await self._store.stub(job.job_id, document_id)
        if not created:
            state = await self._store.state(job.job_id)
            expected = resubmitted(expected, state, again=again)
        if len(value) > names.MAX_RECORD_BYTES:
            raise await self._too_large(job, value, names.MAX_RECORD_BYTES, ours=created)
        headers = _headers(expected.replay, traceparent)
        try:
            await self._publisher.publish(self._topic, job.job_id.encode(), value, headers)
        except RecordTooLarge:
            raise await self._too_large(job, value, None, ours=created) from None
        return JobHandle(expected, self)

    async def submit_many(
        self,
        jobs: Iterable[TranslationJob] | AsyncIterable[TranslationJob],
        *,
        again: bool = False,
        in_flight: int = IN_FLIGHT,
    ) -> AsyncIterator[JobHandle]:
        """Publish many jobs, at most ``in_flight`` unacknowledged; handles in the order of jobs.

        Jobs are drawn as they are needed, so the source may be endless. A job that is refused
        stops no other: its handle is left out, and after the last job SomeNotSubmitted holds each
        refusal. What keeps every job from being published (Unreachable, ...) is raised at once.

        An earlier cancellation of a document no longer holds; one that comes while the jobs are
        being submitted does.
        """
        reopened: set[str] = set()

        def submit(job: TranslationJob, *, again: bool) -> Awaitable[JobHandle]:
            return self._submit(job, reopened, again=again)

        async for handle in submit_each(submit, jobs, again=again, in_flight=in_flight):
            yield handle

    # --- reading --------------------------------------------------------------------------------

    def job(self, job_id: str) -> JobHandle:
        """The handle of any job, whoever submitted it. Reads nothing yet. Raises ValueError."""
        return JobHandle(Expected(check_job_id(job_id)), self)

    async def cancel(self, *, document_id: str) -> None:
        """Cancel all jobs of a document: those under way are aborted, those to come not run.

        It holds until a job of the document is submitted or replayed again. Raises ValueError.
        """
        self._check_open()
        await self._store.cancel_document(check_document_id(document_id))

    async def state(self, job_id: str) -> JobState | None:
        """For handles: what the job's key says now. Concurrent calls share a round trip."""
        self._check_open()
        return await self._store.state(job_id)

    async def end(self, expected: Expected, timeout_s: float | None) -> TranslationResult:
        """For handles: wait for a terminal state."""
        self._check_open()
        return await self._watch.end(expected, timeout_s)

    async def cancel_job(self, job_id: str) -> JobStatus:
        """For handles: cancel one job."""
        self._check_open()
        return await self._store.cancel(job_id)

    # --- inside ---------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")

    async def _too_large(
        self, job: TranslationJob, value: bytes, limit: int | None, *, ours: bool
    ) -> JobTooLarge:
        """The error to raise; the id is made to say ``failed`` unless somebody else uses it."""
        error = JobTooLarge(job.job_id, len(value), limit)
        if ours:
            refusal = Refusal(job, value, self._topic, error.why)
            try:
                await record_refusal(refusal, self._settings.kafka, self._publisher, self._store)
            except (BrokerRefused, BrokerUnreachable) as why:
                # No failure without its dead letter; a cancelled job at least tells its pollers.
                await self._store.cancel(job.job_id)
                error.add_note(f"and its dead letter could not be written: {why}")
        return error


def _headers(replay: int, traceparent: str | None) -> list[tuple[str, bytes]]:
    headers: list[tuple[str, bytes]] = []
    if replay:
        headers.append((names.HEADER_REPLAY, str(replay).encode()))
    if traceparent is not None:
        headers.append((names.HEADER_TRACEPARENT, traceparent.encode()))
    return headers


def _settled(
    settings: DragomanSettings | None,
    bootstrap_servers: str | None,
    redis_url: str | None,
    topic: str | None,
) -> DragomanSettings:
    options: dict[str, Any] = {
        "kafka.bootstrap_servers": bootstrap_servers,
        "kafka.topics": topic,
        "redis.url": redis_url,
    }
    if settings is None:
        return load_settings(DragomanSettings, options=options)
    if any(value is not None for value in options.values()):
        raise SettingsError("give either settings or bootstrap_servers, redis_url and topic")
    return settings
