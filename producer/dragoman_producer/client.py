"""Client that submits translation jobs and reads their results."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from dragoman_connections.settings import DragomanSettings, SettingsError, load_settings
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable, ClientClosed, JobTooLarge
from dragoman_producer.handle import JobHandle, check_document_id, check_job_id
from dragoman_producer.operations.glossaries import GlossaryStore
from dragoman_producer.operations.workers import LiveWorker, live_workers
from dragoman_producer.publisher import Publisher, RecordTooLarge
from dragoman_producer.refusal import Refusal, record_refusal
from dragoman_producer.reopening import Reopening
from dragoman_producer.state import Expected, JobState
from dragoman_producer.store import JobStore
from dragoman_producer.submission import resubmitted, submit_each
from dragoman_producer.tracing import open_tracer
from dragoman_producer.watch import ResultWatch
from dragoman_schemas import names
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.wire import encode_job, open_record

IN_FLIGHT: Final = 1000


class _How(NamedTuple):
    """What to do with an id that has a key already."""

    resubmit: bool
    skip_completed: bool = False


class TranslationClient:
    """Submits jobs to Kafka and reads their states and results from Redis.

    ::

        async with TranslationClient("127.0.0.1:9092", "redis://127.0.0.1:6379") as client:
            handle = await client.submit(TranslationJob(job_id="a1", text="Hi.", target_lang="de"))
            print(await handle.text(timeout_s=30))

    Arguments that are not given come from the environment (DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS, ...)
    or the defaults. The client connects on first use, so one that only reads needs no broker.
    """

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        redis_url: str | None = None,
        topic: str | None = None,
        *,
        settings: DragomanSettings | None = None,
    ) -> None:
        """Read the settings, without connecting; ``settings`` replaces the environment.

        Raises SettingsError.
        """
        self._settings = _settings(settings, bootstrap_servers, redis_url, topic)
        self._topic = self._settings.kafka.topic_names[0]
        timeout_s = self._settings.connect_timeout_s
        self._store = JobStore(self._settings.redis, connect_timeout_s=timeout_s)
        self._publisher = Publisher(
            self._settings.kafka, connect_timeout_s=timeout_s, bound=self._store.box_bound
        )
        self._watch = ResultWatch(self._store)
        self._tracer = open_tracer(self._settings.tracing, self._topic)
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
        """Stop every wait, connection and task; submitted jobs are not affected."""
        self._closed = True
        await self._watch.close()
        await self._publisher.close()
        await self._store.close()
        if self._tracer is not None:
            await self._tracer.close()

    # --- submitting -----------------------------------------------------------------------------

    async def submit(
        self,
        job: TranslationJob,
        *,
        resubmit: bool = False,
        traceparent: str | None = None,
        reopened: set[str] | None = None,
        skip_completed: bool = False,
    ) -> JobHandle:
        """Publish one job and return once Kafka has acknowledged it.

        Submitting the same job twice is harmless: there is one result. ``resubmit`` runs a failed,
        cancelled or expired job again. ``traceparent`` (W3C) becomes a header of the record;
        without it and with ``tracing.enabled`` the submission is a span. An earlier cancellation
        of the job's document is removed, unless ``reopened`` has the document; it is added there.
        ``skip_completed`` publishes nothing for a job that is completed, also with ``resubmit``.

        Raises SubmitFailed if this job cannot be submitted (JobTooLarge, IdTaken, BrokenKey,
        Unreadable, AlreadyCompleted, ReplaysUsedUp), Unreachable, BrokerRefused and StoreRefused.
        After Unreachable the job may have arrived nevertheless; submit it again.
        """
        reopening = self._reopening(reopened)
        how = _How(resubmit, skip_completed)
        return await self._submit(job, reopening, how, traceparent)

    async def _submit(
        self,
        job: TranslationJob,
        reopening: Reopening,
        how: _How,
        traceparent: str | None = None,
    ) -> JobHandle:
        if self._tracer is None or traceparent is not None:
            return await self._send(job, reopening, how, traceparent)
        with self._tracer.submission(job) as own:
            return await self._send(job, reopening, how, own)

    async def _send(
        self,
        job: TranslationJob,
        reopening: Reopening,
        how: _How,
        traceparent: str | None,
    ) -> JobHandle:
        """Publish one job, whose document is reopened before."""
        self._check_open()
        value = encode_job(job)
        expected = Expected(job.job_id, open_record(value).fingerprint)
        if job.document is not None:
            await reopening.once(job.document.document_id)
        created = await self._store.stub(job.job_id)
        if not created:
            state = await self._store.state(job.job_id)
            if how.skip_completed and expected.status_in(state) is JobStatus.COMPLETED:
                return JobHandle(replace(expected, already=JobStatus.COMPLETED), self)
            expected = resubmitted(expected, state, resubmit=how.resubmit)
        if len(value) > names.MAX_RECORD_BYTES:
            raise await self._too_large(job, value, names.MAX_RECORD_BYTES, created=created)
        headers = _headers(expected.replay, traceparent)
        try:
            await self._publisher.publish(self._topic, job.job_id.encode(), value, headers)
        except RecordTooLarge:
            raise await self._too_large(job, value, None, created=created) from None
        return JobHandle(expected, self)

    async def submit_many(
        self,
        jobs: Iterable[TranslationJob] | AsyncIterable[TranslationJob],
        *,
        resubmit: bool = False,
        in_flight: int = IN_FLIGHT,
        reopened: set[str] | None = None,
    ) -> AsyncIterator[JobHandle]:
        """Publish many jobs, at most ``in_flight`` unacknowledged; yield handles in their order.

        Jobs are read from the source on demand, so the source may be endless. A refused job does
        not stop the others: its handle is left out, and SomeNotSubmitted is raised after the last
        job with every refusal. Errors that concern all jobs (Unreachable, ...) are raised at once.

        An earlier cancellation of a document is removed; a cancellation that arrives while the
        jobs are being submitted stays. If you submit jobs of a document in several calls, give each
        call the same set ``reopened``, so that a cancellation between them stays too.
        """
        reopening = self._reopening(reopened)

        def submit(job: TranslationJob, *, resubmit: bool) -> Awaitable[JobHandle]:
            return self._submit(job, reopening, _How(resubmit))

        async for handle in submit_each(submit, jobs, resubmit=resubmit, in_flight=in_flight):
            yield handle

    async def forget(self, job_ids: Sequence[str]) -> None:
        """Remove the results of terminal jobs from Redis: they have been read. Others stay."""
        self._check_open()
        await self._store.forget(job_ids)

    async def in_box(self) -> bool:
        """Whether these services are a box, whose queue is in memory (`dragoman up`)."""
        self._check_open()
        return await self._store.box_bound() is not None

    # --- reading --------------------------------------------------------------------------------

    def job(self, job_id: str) -> JobHandle:
        """Return the handle of any job, also of another client; read nothing. Raises ValueError."""
        return JobHandle(Expected(check_job_id(job_id)), self)

    async def cancel(self, *, document_id: str) -> None:
        """Cancel all jobs of a document: abort the running ones, and do not run later ones.

        The cancellation stays until a job of the document is submitted or replayed. Raises
        ValueError.
        """
        self._check_open()
        await self._store.cancel_document(check_document_id(document_id))

    async def glossary_terms(self, name: str) -> Mapping[str, Sequence[GlossaryEntry]] | None:
        """Return the terms of a stored glossary by target language; None if there is none.

        Raises GlossaryError.
        """
        self._check_open()
        store = GlossaryStore(self._settings)
        try:
            stored = await store.read(name)
            if stored is None:
                return None
            return {tag: await store.terms(stored, tag) for tag in stored.meta.counts}
        finally:
            await store.close()

    async def workers(self) -> Sequence[LiveWorker]:
        """Return the replicas that announce themselves now: a hint, empty without Redis."""
        self._check_open()
        return await live_workers(self._settings)

    async def state(self, job_id: str) -> JobState | None:
        """Return the current state of a job's key; concurrent calls share a round trip."""
        self._check_open()
        return await self._store.state(job_id)

    async def wait_for_result(
        self, expected: Expected, timeout_s: float | None
    ) -> TranslationResult:
        """Wait for a terminal state; see `Jobs.wait_for_result`."""
        self._check_open()
        return await self._watch.wait_for_result(expected, timeout_s)

    async def cancel_job(self, job_id: str) -> JobStatus:
        """Cancel one job; return its status after that."""
        self._check_open()
        return await self._store.cancel(job_id)

    # --- helpers --------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")

    def _reopening(self, reopened: set[str] | None) -> Reopening:
        return Reopening(self._store.reopen, set() if reopened is None else reopened)

    async def _too_large(
        self, job: TranslationJob, value: bytes, limit: int | None, *, created: bool
    ) -> JobTooLarge:
        """Return the error; record the job as ``failed`` if this client created its key."""
        error = JobTooLarge(job.job_id, len(value), limit)
        if created:
            refusal = Refusal(job, value, self._topic, error.why)
            try:
                await record_refusal(refusal, self._settings.kafka, self._publisher, self._store)
            except (BrokerRefused, BrokerUnreachable) as why:
                # `failed` requires a dead letter; `cancelled` at least ends the polling.
                await self._store.cancel(job.job_id)
                error.add_note(f"and its dead letter could not be written: {why}")
        return error


def _headers(replay: int, traceparent: str | None) -> list[tuple[str, bytes]]:
    headers: list[tuple[str, bytes]] = []
    if replay:
        headers.append((names.HEADER_REPLAY, str(replay).encode()))
    if traceparent is not None:
        # What is not ASCII is no traceparent: the worker ignores it, and the job is not lost by it.
        headers.append((names.HEADER_TRACEPARENT, traceparent.encode("ascii", "replace")))
    return headers


def _settings(
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
