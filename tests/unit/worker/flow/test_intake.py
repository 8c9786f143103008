"""Each priority class has reserved capacity, and the bounds hold over all classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.flow.intake import Intake
from dragoman_worker.ports import Capacity

CLASSES = "abc"
class_weights = st.fixed_dictionaries({priority: st.integers(1, 20) for priority in CLASSES})


def test_a_single_class_has_all_capacity_and_polls_once_a_sixteenth_is_free() -> None:
    intake = Intake({"only": 7}, jobs=64, size=1_000)
    assert intake.capacity() == Capacity(64)
    for _ in range(59):
        intake.enter("only", 1)
    assert intake.capacity() == Capacity(5)
    intake.enter("only", 1)
    assert intake.capacity() == Capacity(0), "capacity for four jobs, which is a sixteenth"
    for _ in range(10):
        intake.leave("only", 1)
    assert intake.capacity() == Capacity(14)
    intake.enter("only", 950)
    assert intake.capacity() == Capacity(0), "as many bytes as may be in flight"


def test_a_backlog_of_one_class_leaves_the_reserved_capacity_of_the_others() -> None:
    intake = Intake({"interactive": 8, "bulk": 1}, jobs=90, size=10_000)
    while (capacity := intake.capacity()).priorities is not None and capacity.priorities["bulk"]:
        intake.enter("bulk", 1)
    assert intake.held()["bulk"] == 50, "its ninth of the reserved half, and the shared half"
    assert capacity.priorities == {"interactive": 40, "bulk": 0}
    assert capacity.jobs == 40
    intake.enter("interactive", 10_000)
    assert intake.capacity() == Capacity(0, {"interactive": 0, "bulk": 0})


def test_bytes_of_one_class_leave_the_reserved_capacity_of_the_others() -> None:
    intake = Intake({"interactive": 1, "bulk": 1}, jobs=100, size=1_000)
    intake.enter("bulk", 5_000_000)
    assert intake.capacity().priorities == {"interactive": 75, "bulk": 0}
    intake.leave("bulk", 5_000_000)
    assert intake.capacity() == Capacity(100, {"interactive": 75, "bulk": 75})


@given(
    class_weights,
    st.integers(1, 200),
    st.lists(st.tuples(st.sampled_from(CLASSES), st.booleans()), max_size=300),
)
def test_the_bound_holds_and_a_class_with_no_job_in_flight_has_capacity(
    weights: dict[str, int], jobs: int, steps: list[tuple[str, bool]]
) -> None:
    intake = Intake(weights, jobs=jobs, size=10**9)
    for priority, enters in steps:
        capacity = intake.capacity()
        assert capacity.priorities is not None
        assert all(0 <= capacity.priorities[each] <= capacity.jobs for each in CLASSES)
        assert capacity.jobs <= sum(capacity.priorities.values())
        if enters and capacity.priorities[priority]:
            intake.enter(priority, 1)
        elif not enters and intake.held()[priority]:
            intake.leave(priority, 1)
        held = intake.held()
        assert sum(held.values()) <= max(jobs, len(CLASSES))
        assert all(intake.capacity().priorities[each] for each in CLASSES if not held[each])  # type: ignore[index]


@pytest.mark.parametrize("order", ["ab", "ba", "abc", "cba"])
def test_all_classes_polling_their_whole_capacity_fill_the_bound_exactly(order: str) -> None:
    intake = Intake({"a": 8, "b": 2, "c": 2}, jobs=96, size=10**9)
    capacity = intake.capacity()
    assert capacity.priorities is not None
    left = capacity.jobs
    for priority in order:
        for _ in range(min(left, capacity.priorities[priority])):
            intake.enter(priority, 1)
            left -= 1
    assert left == 0 or set(order) != set("abc")
    assert sum(intake.held().values()) <= 96
