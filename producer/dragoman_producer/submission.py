"""Rules of submission that the real and the in-memory client share."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from dragoman_producer.errors import (
    AlreadyCompleted,
    ReplaysUsedUp,
    SomeNotSubmitted,
    SubmitFailed,
)
from dragoman_producer.handle import JobHandle
from dragoman_producer.state import Expected, JobState
from dragoman_producer.window import in_order
from dragoman_schemas.fingerprint import MAX_SAFE_INTEGER
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import JobStatus

_REOPENABLE: Final = frozenset({JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.EXPIRED})


class Submit(Protocol):
    """Publish one job. Raises SubmitFailed for errors of this job alone."""

    def __call__(self, job: TranslationJob, *, resubmit: bool) -> Awaitable[JobHandle]: ...


def resubmitted(expected: Expected, state: JobState | None, *, resubmit: bool) -> Expected:
    """Return what to wait for if the id already has a key.

    Raises IdTaken, AlreadyCompleted and ReplaysUsedUp.
    """
    status = expected.status_in(state)
    if state is None or not resubmit:
        return replace(expected, already=status)
    if status is JobStatus.COMPLETED:
        raise AlreadyCompleted(expected.job_id)
    if status in _REOPENABLE:
        if state.replays >= MAX_SAFE_INTEGER:
            raise ReplaysUsedUp(expected.job_id)
        return replace(expected, replay=state.replays + 1)
    return replace(expected, already=status)


async def submit_each(
    submit: Submit,
    jobs: Iterable[TranslationJob] | AsyncIterable[TranslationJob],
    *,
    resubmit: bool,
    in_flight: int,
) -> AsyncIterator[JobHandle]:
    """Yield handles in the order of the jobs; then raise SomeNotSubmitted if any was refused."""

    async def attempt(job: TranslationJob) -> JobHandle | SubmitFailed:
        try:
            return await submit(job, resubmit=resubmit)
        except SubmitFailed as refusal:
            return refusal

    refused: list[SubmitFailed] = []
    async for outcome in in_order(jobs, attempt, in_flight=in_flight):
        if isinstance(outcome, SubmitFailed):
            refused.append(outcome)
        else:
            yield outcome
    if refused:
        raise SomeNotSubmitted(refused)
