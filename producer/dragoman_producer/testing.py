"""In-memory client, for tests of programs without Kafka, Redis and a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from dragoman_producer.errors import ClientClosed, JobTooLarge, ResultTimeout
from dragoman_producer.handle import JobHandle, check_document_id, check_job_id
from dragoman_producer.operations.workers import LiveWorker
from dragoman_producer.state import Expected, JobState
from dragoman_producer.submission import resubmitted, submit_each
from dragoman_schemas import names
from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_schemas.results import (
    TERMINAL_STATUSES,
    JobStatus,
    TranslationResult,
    cancelled_result,
)
from dragoman_schemas.wire import encode_job, encode_result, now_rfc3339, open_record

IN_FLIGHT: Final = 1000

Translate = Callable[[Item, TranslationJob], str]
"""Function that translates one item of a job, or raises ItemFailed."""


class ItemFailed(Exception):
    """Raised by a translate function: the item has no text and its job is ``failed``."""

    def __init__(
        self,
        code: FailureCode = FailureCode.ENGINE_FAILED,
        message: str = "as requested by the test",
    ) -> None:
        super().__init__(message)
        self.code = code


def tagged(item: Item, job: TranslationJob) -> str:
    """Translate ``Hello.`` to ``[de] Hello.``, like the echo engine."""
    return f"[{job.target_lang}] {item.text}"


@dataclass(slots=True)
class _StoredJob:
    """State of one id, and the job to run, if there is one."""

    state: JobState
    job: TranslationJob | None = None
    replay: int = 0


class InMemoryClient:
    """A TranslationClient without services: the same methods, errors and order of events.

    Jobs are translated as they are submitted, by ``translate``. With ``held=True`` they stay
    ``queued`` until ``run_all``, so that waiting and cancelling can be tested. ``submitted`` holds
    every published job in order.
    """

    def __init__(self, translate: Translate = tagged, *, held: bool = False) -> None:
        self.submitted: list[TranslationJob] = []
        self.glossaries: dict[str, dict[str, list[GlossaryEntry]]] = {}
        """Terms of the stored glossaries, by name and target language."""
        self.live: list[LiveWorker] = []
        """Workers that announce themselves, for dry runs."""
        self._translate = translate
        self._held = held
        self._keys: dict[str, _StoredJob] = {}
        self._cancelled_documents: set[str] = set()
        self._changed = asyncio.Condition()
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
        """Finish every wait with ClientClosed."""
        self._closed = True
        await self._notify()

    async def run_all(self) -> None:
        """Translate all queued jobs; only a client with ``held=True`` has any."""
        for kept in self._keys.values():
            if kept.job is not None:
                self._run(kept, kept.job)
        await self._notify()

    # --- the surface of TranslationClient -------------------------------------------------------

    async def submit(
        self,
        job: TranslationJob,
        *,
        resubmit: bool = False,
        traceparent: str | None = None,
        reopened: set[str] | None = None,
        skip_completed: bool = False,
    ) -> JobHandle:
        """Publish one job; see TranslationClient.submit. ``traceparent`` is ignored."""
        del traceparent
        self._check_open()
        value = encode_job(job)
        expected = Expected(job.job_id, open_record(value).fingerprint)
        if job.job_id in self._keys:
            state = self._keys[job.job_id].state
            if skip_completed and expected.status_in(state) is JobStatus.COMPLETED:
                return JobHandle(replace(expected, already=JobStatus.COMPLETED), self)
            expected = resubmitted(expected, self._keys[job.job_id].state, resubmit=resubmit)
        if len(value) > names.MAX_RECORD_BYTES:
            raise self._too_large(job, len(value))
        reopened = set() if reopened is None else reopened
        if job.document is not None and job.document.document_id not in reopened:
            self._cancelled_documents.discard(job.document.document_id)
            reopened.add(job.document.document_id)
        self.submitted.append(job)
        kept = self._keys.setdefault(job.job_id, _StoredJob(JobState(JobStatus.QUEUED)))
        if kept.state.status not in TERMINAL_STATUSES or expected.replay > kept.state.replays:
            kept.job, kept.replay = job, expected.replay
        if not self._held:
            await self.run_all()
        return JobHandle(expected, self)

    async def submit_many(
        self,
        jobs: Iterable[TranslationJob] | AsyncIterable[TranslationJob],
        *,
        resubmit: bool = False,
        in_flight: int = IN_FLIGHT,
        reopened: set[str] | None = None,
    ) -> AsyncIterator[JobHandle]:
        """Publish many jobs; see TranslationClient.submit_many."""
        submit = partial(self.submit, reopened=set() if reopened is None else reopened)
        async for handle in submit_each(submit, jobs, resubmit=resubmit, in_flight=in_flight):
            yield handle

    def job(self, job_id: str) -> JobHandle:
        """Return a handle; see TranslationClient.job."""
        return JobHandle(Expected(check_job_id(job_id)), self)

    async def cancel(self, *, document_id: str) -> None:
        """Cancel the jobs of a document; see TranslationClient.cancel."""
        self._check_open()
        self._cancelled_documents.add(check_document_id(document_id))

    async def glossary_terms(self, name: str) -> Mapping[str, Sequence[GlossaryEntry]] | None:
        """Return the terms of a stored glossary by target language; None if there is none."""
        self._check_open()
        return self.glossaries.get(name)

    async def workers(self) -> Sequence[LiveWorker]:
        """Return `live`: the replicas that announce themselves."""
        self._check_open()
        return self.live

    async def state(self, job_id: str) -> JobState | None:
        """Return the current state of a job; None if it is unknown."""
        self._check_open()
        kept = self._keys.get(job_id)
        return kept.state if kept else None

    async def wait_for_result(
        self, expected: Expected, timeout_s: float | None
    ) -> TranslationResult:
        """Wait for a terminal state; see `Jobs.wait_for_result`."""
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                while (result := expected.result_in(await self.state(expected.job_id))) is None:
                    await self._changed.wait()
                return result
        except TimeoutError:
            status = expected.status_in(await self.state(expected.job_id))
            raise ResultTimeout(expected.job_id, timeout_s or 0.0, status) from None

    async def cancel_job(self, job_id: str) -> JobStatus:
        """Cancel one job; return its status after that."""
        self._check_open()
        kept = self._keys.setdefault(job_id, _StoredJob(JobState(JobStatus.QUEUED)))
        if kept.state.status not in TERMINAL_STATUSES:
            kept.job = None
            fields = cancelled_result(job_id, now_rfc3339()).model_dump(by_alias=True)
            self._finish(kept, fields)
            await self._notify()
        return JobStatus(kept.state.status)

    # --- helpers --------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _run(self, kept: _StoredJob, job: TranslationJob) -> None:
        kept.job = None
        fields: dict[str, Any] = {
            "job_id": job.job_id,
            "fingerprint": open_record(encode_job(job)).fingerprint,
            "metadata": job.metadata,
            "document": job.document,
            "model": "memory",
            "deliveries": 1,
        }
        if job.document and job.document.document_id in self._cancelled_documents:
            fields["status"] = JobStatus.CANCELLED
        else:
            fields |= self._translated(job)
        kept.state = replace(kept.state, replays=kept.replay, fingerprint=fields["fingerprint"])
        self._finish(kept, fields)

    def _translated(self, job: TranslationJob) -> dict[str, Any]:
        items = [self._item(item, job) for item in job.items]
        failed = [item["error"] for item in items if "error" in item]
        if not failed:
            return {"status": JobStatus.COMPLETED, "translations": items}
        error = {**failed[0], "retryable": failed[0]["code"] in RETRYABLE, "stage": "translate"}
        return {"status": JobStatus.FAILED, "translations": items, "error": error}

    def _item(self, item: Item, job: TranslationJob) -> dict[str, Any]:
        if not item.text.strip():
            return {"id": item.id, "text": item.text}
        try:
            return {"id": item.id, "text": self._translate(item, job), "attempts": 1}
        except ItemFailed as failure:
            return {"id": item.id, "error": {"code": failure.code, "message": str(failure)}}

    def _finish(self, kept: _StoredJob, fields: dict[str, Any]) -> None:
        result = TranslationResult.model_validate(
            {"timing": {"finished_at": now_rfc3339()}, **fields}
        )
        kept.state = replace(kept.state, status=str(fields["status"]), result=encode_result(result))

    def _too_large(self, job: TranslationJob, size: int) -> JobTooLarge:
        refusal = JobTooLarge(job.job_id, size, names.MAX_RECORD_BYTES)
        if job.job_id not in self._keys:
            kept = self._keys[job.job_id] = _StoredJob(JobState(JobStatus.QUEUED))
            error = {"code": FailureCode.INVALID_JOB, "message": refusal.why, "stage": "submit"}
            items = [{"id": item.id, "error": error} for item in job.items]
            fields = {"job_id": job.job_id, "status": JobStatus.FAILED, "translations": items}
            self._finish(kept, {**fields, "error": error})
        return refusal
