"""Tests that large results are built in a thread, and usual ones on the event loop."""

from __future__ import annotations

import threading

import pytest

from dragoman_schemas.results import JobStatus
from dragoman_worker.job.executor import FEW_ITEMS
from dragoman_worker.job.in_flight import JobInFlight
from dragoman_worker.job.outcome import Outcome
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.reporter import Reporter
from support.fakes.core import Core, record


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets, for each result, whether it was built on the event loop's thread."""
    seen: list[bool] = []
    finished = Reporter.finished

    def watched(self: Reporter, job: JobInFlight, plan: Plan) -> Outcome:
        seen.append(threading.current_thread() is threading.main_thread())
        return finished(self, job, plan)

    monkeypatch.setattr(Reporter, "finished", watched)
    return seen


@pytest.mark.parametrize(("items", "on_the_loop"), [(1, True), (FEW_ITEMS, True), (512, False)])
async def test_a_large_result_is_built_in_a_thread(
    items: int, on_the_loop: bool, threads: list[bool]
) -> None:
    core = Core()
    core.consumer.append(record(text=[f"text {number}" for number in range(items)]))
    await core.run_all()
    assert threads == [on_the_loop]
    assert core.state().status is JobStatus.COMPLETED
    assert core.texts() == [f"TEXT {number}" for number in range(items)]
