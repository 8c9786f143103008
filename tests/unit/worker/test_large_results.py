"""The result of a job of many items is made beside the event loop, that of a usual job on it."""

from __future__ import annotations

import threading

import pytest

from dragoman_schemas.results import JobStatus
from dragoman_worker.job.executor import FEW_ITEMS
from dragoman_worker.job.outcome import Outcome
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.reporter import Execution, Reporter
from support.fakes.core import Core, record


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each result was made on the event loop's thread."""
    seen: list[bool] = []
    finished = Reporter.finished

    def watched(self: Reporter, execution: Execution, plan: Plan) -> Outcome:
        seen.append(threading.current_thread() is threading.main_thread())
        return finished(self, execution, plan)

    monkeypatch.setattr(Reporter, "finished", watched)
    return seen


@pytest.mark.parametrize(("items", "on_the_loop"), [(1, True), (FEW_ITEMS, True), (512, False)])
async def test_a_large_result_is_made_beside_the_loop(
    items: int, on_the_loop: bool, threads: list[bool]
) -> None:
    core = Core()
    core.consumer.append(record(text=[f"text {number}" for number in range(items)]))
    await core.run_all()
    assert threads == [on_the_loop]
    assert core.state().status is JobStatus.COMPLETED
    assert core.texts() == [f"TEXT {number}" for number in range(items)]
