"""An in-process store of jobs that behaves as the scripts of the contract do.

The same contract tests hold for it and for `RedisStore`; nothing survives the process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from dragoman_schemas.results import (
    TERMINAL_STATUSES,
    JobStatus,
    TranslationResult,
    as_terminal,
    cancelled_result,
)
from dragoman_schemas.scripts import CancelEffect, ClaimAnswer, Quarantine, Verdict
from dragoman_schemas.wire import encode_result, now_rfc3339
from dragoman_worker.errors import REUSED, Conflict
from dragoman_worker.ports import CancelNotice, Claim, ClaimRequest
from dragoman_worker.stores.redis import encoded

LIVE_TTL_S: Final = 7 * 86_400
_COUNTED: Final = frozenset({Verdict.SUSPECT, Verdict.POISONED})


@dataclass(slots=True)
class JobState:
    """The fields of one job's key; `claims` maps nonces to the origins of their records."""

    status: JobStatus = JobStatus.QUEUED
    result: TranslationResult | None = None
    fingerprint: str | None = None
    deliveries: int = 0
    replays: int = 0
    claims: dict[str, str] = field(default_factory=dict)
    cancel_requested_at: str | None = None
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    expires_at: float = 0.0
    """When the key expires, by the store's clock."""

    @property
    def terminal(self) -> bool:
        """Whether the status is terminal; then only a replay can change it."""
        return self.status in TERMINAL_STATUSES


@dataclass(slots=True)
class DocumentProgress:
    """The hashes of bits of a document, as sets of indexes."""

    completed: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    expires_at: float = 0.0
    """When the keys expire, by the store's clock."""


class LocalJobs:
    """The Store port, and what clients do to the same keys. Event loop only; never unavailable."""

    def __init__(
        self,
        *,
        poison_after: int = 4,
        live_ttl_s: int = LIVE_TTL_S,
        want_results: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._poison_after = poison_after
        self._live_ttl_s = live_ttl_s
        self._want_results = want_results
        self._clock = clock
        self._jobs: dict[str, JobState] = {}
        self._cancelled_documents: set[str] = set()
        self._listeners: list[asyncio.Queue[CancelNotice]] = []
        self.documents: dict[str, DocumentProgress] = {}
        self.events: list[tuple[str, str]] = []
        """(job id, status) of every finish and announcement, oldest first."""

    # --- the port ---------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """Claim the job, or return why not."""
        state = self.state(request.claim.job_id)
        verdict = self._verdict(state, request)
        if verdict is Verdict.RUN:
            state = self._claim(state or JobState(), request)
        return self._answer(verdict, state or JobState(), request)

    async def release(self, claim: Claim) -> None:
        """Remove the claim."""
        state = self.state(claim.job_id)
        if state is None or state.claims.pop(claim.nonce, None) is None:
            return
        if not state.claims and state.status is JobStatus.RUNNING:
            state.status = JobStatus.QUEUED

    async def finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        """Write the terminal state and return the one that stands."""
        state = self.state(claim.job_id)
        encoded(result)
        if state is None or _open_to(state, claim):
            self._end(state or JobState(), claim, result)
            return result
        if _owned_by_another(state, claim.fingerprint):
            raise Conflict(REUSED)
        status = as_terminal(state.status)
        if status is None:
            return None
        return state.result or TranslationResult(job_id=claim.job_id, status=status)

    async def confirm(self, job_id: str) -> bool:
        """Return True at once: nothing here is lost while the process lives."""
        return True

    async def announce(self, result: TranslationResult, ttl_s: int) -> None:
        """Repeat what follows a finish."""
        if result.document is not None:
            progress = self.documents.setdefault(result.document.document_id, DocumentProgress())
            progress.ended.add(result.document.index)
            if result.status == "completed":
                progress.completed.add(result.document.index)
            progress.expires_at = max(progress.expires_at, self.now() + ttl_s)
        self.events.append((result.job_id, result.status))

    async def cancels(self) -> AsyncIterator[CancelNotice]:
        """Yield cancellations from now on."""
        notices: asyncio.Queue[CancelNotice] = asyncio.Queue()
        self._listeners.append(notices)
        try:
            while True:
                yield await notices.get()
        finally:
            self._listeners.remove(notices)

    # --- what clients do --------------------------------------------------------------------------

    def state(self, job_id: str) -> JobState | None:
        """Return the fields of a job's key; None without a key, or past its TTL."""
        state = self._jobs.get(job_id)
        if state is not None and state.expires_at <= self.now():
            del self._jobs[job_id]
            return None
        return state

    def now(self) -> float:
        """Return the time of the clock that `expires_at` uses."""
        return self._clock()

    @property
    def listening(self) -> bool:
        """Whether a worker listens to cancellations now."""
        return bool(self._listeners)

    def stub(self, job_id: str) -> bool:
        """Write the key of a job before its record is produced. False if the key exists."""
        if self.state(job_id) is not None:
            return False
        self._jobs[job_id] = JobState(queued_at=now_rfc3339(), expires_at=self._live())
        return True

    def cancel(self, job_id: str) -> CancelEffect:
        """Cancel a job that has not run, or request its abort."""
        state = self.state(job_id)
        if state is None or state.status is JobStatus.QUEUED:
            state = self._jobs.setdefault(job_id, state or JobState())
            state.status = JobStatus.CANCELLED
            state.finished_at = now_rfc3339()
            state.result = cancelled_result(job_id, state.finished_at)
            state.cancel_requested_at = None
            state.expires_at = self._live()
            return CancelEffect.CANCELLED
        if state.terminal:
            return CancelEffect.ENDED
        state.cancel_requested_at = state.cancel_requested_at or now_rfc3339()
        self._notify(CancelNotice(job_id=job_id))
        return CancelEffect.REQUESTED

    def cancel_document(self, document_id: str) -> None:
        """Cancel every job of a document, running or not read yet."""
        self._cancelled_documents.add(document_id)
        self._notify(CancelNotice(document_id=document_id))

    # --- the scripts ------------------------------------------------------------------------------

    def _verdict(self, state: JobState | None, request: ClaimRequest) -> Verdict:
        if state is None:
            return Verdict.RUN
        if _owned_by_another(state, request.claim.fingerprint):
            return Verdict.CONFLICT
        if _reopens(state, request):
            return Verdict.RUN
        if state.terminal:
            return Verdict.DONE
        if state.cancel_requested_at is not None:
            return Verdict.CANCEL
        return self._suspicion(state, request)

    def _suspicion(self, state: JobState, request: ClaimRequest) -> Verdict:
        if request.claim.nonce in state.claims:
            return Verdict.RUN
        suspicions = _suspicions(state, request)
        if suspicions >= self._poison_after:
            return Verdict.POISONED
        if request.quarantine < Quarantine.wanted(suspicions):
            return Verdict.SUSPECT
        return Verdict.RUN

    def _claim(self, state: JobState, request: ClaimRequest) -> JobState:
        reopens = _reopens(state, request)
        if request.claim.nonce in state.claims and not reopens:
            return state  # a repeated call
        now = now_rfc3339()
        if reopens:
            state.result = state.finished_at = state.cancel_requested_at = None
            state.claims.clear()
        if state.started_at is None or reopens or request.claim.replay > state.replays:
            state.started_at = now
        state.status = JobStatus.RUNNING
        state.claims[request.claim.nonce] = request.origin
        state.fingerprint = request.claim.fingerprint
        state.replays = max(state.replays, request.claim.replay)
        state.queued_at = state.queued_at or request.queued_at
        state.deliveries += 1
        state.expires_at = self._live()
        self._jobs[request.claim.job_id] = state
        return state

    def _end(self, state: JobState, claim: Claim, result: TranslationResult) -> None:
        timing = result.timing
        state.status = JobStatus(result.status)
        state.result = result
        state.fingerprint = claim.fingerprint
        state.replays = claim.replay
        state.deliveries = max(state.deliveries, result.deliveries)
        state.queued_at = timing.queued_at or state.queued_at
        state.started_at = timing.started_at or state.started_at
        state.finished_at = timing.finished_at or now_rfc3339()
        state.cancel_requested_at = None
        state.claims.clear()
        state.expires_at = self.now() + claim.ttl_s
        self._jobs[claim.job_id] = state

    def _answer(self, verdict: Verdict, state: JobState, request: ClaimRequest) -> ClaimAnswer:
        known = request.claim.job_id in self._jobs
        stored = state.result if verdict is Verdict.DONE and self._want_results else None
        return ClaimAnswer(
            verdict=verdict,
            deliveries=state.deliveries,
            replays=state.replays,
            queued_at=state.queued_at,
            started_at=state.started_at,
            status=state.status if known else None,
            result=encode_result(stored) if stored is not None else None,
            suspicions=_suspicions(state, request) if verdict in _COUNTED else 0,
            document_cancelled=request.document_id in self._cancelled_documents,
        )

    def _live(self) -> float:
        return self.now() + self._live_ttl_s

    def _notify(self, notice: CancelNotice) -> None:
        for listener in self._listeners:
            listener.put_nowait(notice)


def _suspicions(state: JobState, request: ClaimRequest) -> int:
    own = request.claim.nonce
    return sum(origin == request.origin for nonce, origin in state.claims.items() if nonce != own)


def _reopens(state: JobState, request: ClaimRequest) -> bool:
    ended_unwell = state.terminal and state.status is not JobStatus.COMPLETED
    return ended_unwell and request.claim.replay > state.replays


def _owned_by_another(state: JobState, fingerprint: str) -> bool:
    return state.fingerprint is not None and state.fingerprint != fingerprint


def _open_to(state: JobState, claim: Claim) -> bool:
    if state.terminal or state.replays > claim.replay:
        return False
    return not _owned_by_another(state, claim.fingerprint)
