"""How does a program test itself without Kafka, Redis and a worker? With a client in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from dragoman_producer.errors import ClientClosed, JobTooLarge, ResultTimeout
from dragoman_producer.handle import JobHandle, check_document_id, check_job_id
from dragoman_producer.state import Expected, JobState
from dragoman_producer.submission import resubmitted, submit_each
from dragoman_schemas import names
from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_schemas.results import TERMINAL_STATUSES, JobStatus, TranslationResult
from dragoman_schemas.wire import encode_job, encode_result, now_rfc3339, open_record

IN_FLIGHT: Final = 1000

Translate = Callable[[Item, TranslationJob], str]
"""Translates one item of a job; raises ItemFailed where it shall have no translation."""


class ItemFailed(Exception):
    """Raise it in a translate function: the item has no text and its job is ``failed``."""

    def __init__(
        self, code: FailureCode = FailureCode.ENGINE_FAILED, message: str = "as the test asked"
    ) -> None:
        super().__init__(message)
        self.code = code


def tagged(item: Item, job: TranslationJob) -> str:
    """``Hello.`` -> ``[de] Hello.``, like the echo engine."""
    return f"[{job.target_lang}] {item.text}"


@dataclass(slots=True)
class _Kept:
    """One id: what its key would say, and the job to run, if there is one."""

    state: JobState
    job: TranslationJob | None = None
    replay: int = 0


class InMemoryClient:
    """A TranslationClient without services: same methods, same errors, same order of events.

    Jobs are translated as they are submitted, by ``translate``. With ``held=True`` they stay
    ``queued`` until ``run_all``, so that a program's waiting and cancelling can be tested.
    ``submitted`` is every job as it was published, in order.
    """

    def __init__(self, translate: Translate = tagged, *, held: bool = False) -> None:
        self.submitted: list[TranslationJob] = []
        self._translate = translate
        self._held = held
        self._keys: dict[str, _Kept] = {}
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
        """End every wait with ClientClosed."""
        self._closed = True
        await self._tell()

    async def run_all(self) -> None:
        """Translate what is queued; only a client that holds jobs has any."""
        for kept in self._keys.values():
            if kept.job is not None:
                self._run(kept, kept.job)
        await self._tell()

    # --- the surface of TranslationClient -------------------------------------------------------

    async def submit(
        self, job: TranslationJob, *, again: bool = False, traceparent: str | None = None
    ) -> JobHandle:
        """See TranslationClient.submit; ``traceparent`` is accepted and not kept."""
        del traceparent
        self._check_open()
        value = encode_job(job)
        expected = Expected(job.job_id, open_record(value).fingerprint)
        if job.job_id in self._keys:
            expected = resubmitted(expected, self._keys[job.job_id].state, again=again)
        if len(value) > names.MAX_RECORD_BYTES:
            raise self._too_large(job, len(value))
        if job.document is not None:
            self._cancelled_documents.discard(job.document.document_id)
        self.submitted.append(job)
        kept = self._keys.setdefault(job.job_id, _Kept(JobState(JobStatus.QUEUED)))
        if kept.state.status not in TERMINAL_STATUSES or expected.replay > kept.state.replays:
            kept.job, kept.replay = job, expected.replay
        if not self._held:
            await self.run_all()
        return JobHandle(expected, self)

    async def submit_many(
        self,
        jobs: Iterable[TranslationJob] | AsyncIterable[TranslationJob],
        *,
        again: bool = False,
        in_flight: int = IN_FLIGHT,
    ) -> AsyncIterator[JobHandle]:
        """See TranslationClient.submit_many."""
        async for handle in submit_each(self.submit, jobs, again=again, in_flight=in_flight):
            yield handle

    def job(self, job_id: str) -> JobHandle:
        """See TranslationClient.job."""
        return JobHandle(Expected(check_job_id(job_id)), self)

    async def cancel(self, *, document_id: str) -> None:
        """See TranslationClient.cancel."""
        self._check_open()
        self._cancelled_documents.add(check_document_id(document_id))

    async def state(self, job_id: str) -> JobState | None:
        """For handles: what the job's key would say."""
        self._check_open()
        kept = self._keys.get(job_id)
        return kept.state if kept else None

    async def end(self, expected: Expected, timeout_s: float | None) -> TranslationResult:
        """For handles: wait for a terminal state."""
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                while (result := expected.end_in(await self.state(expected.job_id))) is None:
                    await self._changed.wait()
                return result
        except TimeoutError:
            status = expected.status_in(await self.state(expected.job_id))
            raise ResultTimeout(expected.job_id, timeout_s or 0.0, status) from None

    async def cancel_job(self, job_id: str) -> JobStatus:
        """For handles: cancel one job."""
        self._check_open()
        kept = self._keys.setdefault(job_id, _Kept(JobState(JobStatus.QUEUED)))
        if kept.state.status not in TERMINAL_STATUSES:
            kept.job = None
            self._end(kept, {"job_id": job_id, "status": JobStatus.CANCELLED})
            await self._tell()
        return JobStatus(kept.state.status)

    # --- inside ---------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _run(self, kept: _Kept, job: TranslationJob) -> None:
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
        self._end(kept, fields)

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

    def _end(self, kept: _Kept, fields: dict[str, Any]) -> None:
        result = TranslationResult.model_validate(
            {"timing": {"finished_at": now_rfc3339()}, **fields}
        )
        kept.state = replace(kept.state, status=str(fields["status"]), result=encode_result(result))

    def _too_large(self, job: TranslationJob, size: int) -> JobTooLarge:
        refusal = JobTooLarge(job.job_id, size, names.MAX_RECORD_BYTES)
        if job.job_id not in self._keys:
            kept = self._keys[job.job_id] = _Kept(JobState(JobStatus.QUEUED))
            error = {"code": FailureCode.INVALID_JOB, "message": refusal.why, "stage": "submit"}
            items = [{"id": item.id, "error": error} for item in job.items]
            fields = {"job_id": job.job_id, "status": JobStatus.FAILED, "translations": items}
            self._end(kept, {**fields, "error": error})
        return refusal
