"""Jobs in flight: duplicates, cancels, claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dragoman_schemas.results import TranslationResult
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight, Step
from dragoman_worker.ports import CancelNotice, Claim
from support.builders.jobs_in_flight import entered

KEY = ("a1", "f" * 64, 0)
RESULT = TranslationResult(job_id="a1", status="completed")


async def run_for_ever(job: JobInFlight, *soon: Callable[[], None]) -> None:
    """Run a job that only a cancel can end, and call `soon` once it runs."""
    async with asyncio.timeout(None) as scope:
        job.run_in(scope)
        for call in soon:
            asyncio.get_running_loop().call_soon(call)
        await asyncio.Event().wait()


async def test_a_job_is_found_until_it_leaves() -> None:
    in_flight = JobsInFlight()
    assert in_flight.find(KEY) is None
    job = entered(in_flight)
    assert in_flight.find(KEY) is job
    assert in_flight.find(("a1", "f" * 64, 1)) is None
    waiting = job.settled()
    in_flight.leave(job, RESULT)
    assert (in_flight.find(KEY), len(in_flight)) == (None, 0)
    assert await waiting is RESULT


async def test_a_released_job_wakes_its_duplicates_without_a_result() -> None:
    in_flight = JobsInFlight()
    job = entered(in_flight)
    waiting = job.settled()
    in_flight.leave(job, None)
    assert await waiting is None


async def test_a_notice_cancels_only_the_jobs_that_it_names() -> None:
    in_flight = JobsInFlight()
    one = entered(in_flight, document_id="d1")
    replay = entered(in_flight, replay=1, document_id="d1")
    other = entered(in_flight, "a2", document_id="d1")
    free = entered(in_flight, "a3")
    assert in_flight.cancel(CancelNotice(job_id="a1")) == 2
    assert [job.cancelled for job in (one, replay, other, free)] == [True, True, False, False]
    assert in_flight.cancel(CancelNotice(document_id="d1")) == 3
    assert other.cancelled
    assert in_flight.cancel(CancelNotice(job_id="nobody")) == 0
    assert in_flight.cancel(CancelNotice()) == 0
    assert not free.cancelled


async def test_a_cancel_ends_the_run_that_is_under_way() -> None:
    job = entered(JobsInFlight())
    with pytest.raises(TimeoutError):
        await run_for_ever(job, job.cancel, job.cancel)


async def test_a_cancel_that_came_before_the_run_ends_it_at_once() -> None:
    job = entered(JobsInFlight())
    job.cancel()
    with pytest.raises(TimeoutError):
        await run_for_ever(job)


async def test_a_cancel_after_the_run_comes_too_late() -> None:
    job = entered(JobsInFlight())
    async with asyncio.timeout(None) as scope:
        job.run_in(scope)
        job.leave_scope()
        job.cancel()
        await asyncio.sleep(0)
    assert job.cancelled


async def test_outstanding_claims_are_those_of_jobs_that_have_one() -> None:
    in_flight = JobsInFlight()
    job = entered(in_flight)
    entered(in_flight, "a2")
    assert list(in_flight.claims()) == []
    job.claim = Claim(job_id="a1", fingerprint="f" * 64, nonce="n1")
    assert list(in_flight.claims()) == [job.claim]


async def test_unsettled_s_is_the_wait_of_the_oldest_job_in_settlement() -> None:
    in_flight = JobsInFlight()
    jobs = [entered(in_flight, f"a{number}") for number in range(3)]
    jobs[0].since -= 1_000  # in the engine, which may take its time
    jobs[0].step = Step.ENGINE
    assert in_flight.unsettled_s() == 0
    for job, waited_s in zip(jobs[1:], (70, 7), strict=True):
        job.enter(Step.SETTLE)
        job.since -= waited_s
    assert 70 <= in_flight.unsettled_s() < 75
    in_flight.leave(jobs[1], RESULT)
    assert 7 <= in_flight.unsettled_s() < 12
    in_flight.leave(jobs[2], RESULT)
    assert in_flight.unsettled_s() == 0


@pytest.mark.parametrize(
    ("step", "released"),
    [(Step.PERMIT, False), (Step.CLAIM, False), (Step.ENGINE, True), (Step.SETTLE, True)],
)
def test_a_lost_partition_releases_claims_that_were_answered_and_none_under_way(
    step: Step, released: bool
) -> None:
    in_flight = JobsInFlight()
    job = entered(in_flight)
    job.enter(step)
    assert in_flight.lost(lambda _: True) == []
    assert in_flight.lost(lambda _: False) == ([job] if released else [])
    job.released = True
    assert in_flight.lost(lambda _: False) == []
