"""The fair queue serves classes by weight, jobs in rotation, and starves nobody."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.flow.fair_queue import FairQueue

CLASSES = "abc"
class_weights = st.fixed_dictionaries({priority: st.integers(1, 20) for priority in CLASSES})
costs = st.lists(st.tuples(st.sampled_from(CLASSES), st.integers(1, 50)), min_size=1, max_size=300)


def serve(queue: FairQueue[int]) -> tuple[str, str, int]:
    """Serve the next entry, which is its own cost."""
    queued = queue.first()
    assert queued is not None
    queue.serve(queued, queued.entry)
    return queued.priority, queued.job, queued.entry


@given(class_weights, st.data())
def test_waiting_classes_are_served_by_weight_to_within_one_entry_of_each(
    weights: dict[str, int], data: st.DataObject
) -> None:
    queue: FairQueue[int] = FairQueue(weights)
    served, largest = dict.fromkeys(CLASSES, 0), 50
    for number in range(data.draw(st.integers(1, 100))):
        for priority in CLASSES:  # never empty, whatever the order of the jobs
            while queue.waiting(priority) < 2:
                cost = data.draw(st.integers(1, largest)) if number < 20 else 1 + number % largest
                queue.join(priority, f"job {data.draw(st.integers(0, 3))}", cost)
        priority, _, cost = serve(queue)
        served[priority] += cost
        for one in CLASSES:
            for other in CLASSES:
                apart = served[one] / weights[one] - served[other] / weights[other]
                assert apart <= largest / weights[one] + largest / weights[other] + 1e-6


@given(class_weights, costs, st.lists(st.booleans(), max_size=600))
def test_every_waiting_entry_is_served_and_first_is_none_only_when_nothing_waits(
    weights: dict[str, int], arrivals: list[tuple[str, int]], serves: list[bool]
) -> None:
    queue: FairQueue[int] = FairQueue(weights)
    coming, waiting = list(reversed(arrivals)), Counter[tuple[str, int]]()
    for serves_now in [*serves, *[False] * len(arrivals), *[True] * len(arrivals)]:
        if not serves_now and coming:
            priority, cost = coming.pop()
            queue.join(priority, "job", cost)
            waiting[priority, cost] += 1
        elif len(queue):
            priority, _, cost = serve(queue)
            waiting[priority, cost] -= 1
        assert len(queue) == waiting.total() == sum(map(queue.waiting, CLASSES))
        assert (queue.first() is None) == (len(queue) == 0)
    assert waiting.total() == 0


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 50))
def test_an_entry_of_an_idle_class_is_served_second_at_the_latest(
    weight: int, other: int, cost: int
) -> None:
    queue: FairQueue[int] = FairQueue({"a": weight, "b": other})
    for _ in range(20):
        queue.join("b", "job", cost)
    for _ in range(10):
        serve(queue)
    queue.join("a", "job", cost)
    assert "a" in {serve(queue)[0] for _ in range(2)}


def test_weights_of_1000_and_1_serve_the_lighter_class_once_in_1001() -> None:
    queue: FairQueue[int] = FairQueue({"heavy": 1000, "light": 1})
    for priority in ["heavy"] * 3003 + ["light"] * 4:
        queue.join(priority, "job", 1)
    priorities = [serve(queue)[0] for _ in range(3003)]
    at = [number for number, priority in enumerate(priorities) if priority == "light"]
    assert at == pytest.approx([0, 1001, 2002], abs=2)


def test_an_idle_class_earns_no_credit() -> None:
    queue: FairQueue[int] = FairQueue({"a": 1, "b": 1})
    for _ in range(200):
        queue.join("a", "job", 1)
    for _ in range(100):
        serve(queue)
    for _ in range(100):
        queue.join("b", "job", 1)
    assert Counter(serve(queue)[0] for _ in range(20)) == {"a": 10, "b": 10}


def test_a_class_that_was_served_alone_has_no_debt_when_another_becomes_active() -> None:
    queue: FairQueue[int] = FairQueue({"a": 1, "b": 1})
    for number in range(3):
        queue.join("b" if number == 2 else "a", "job", 1000)
        serve(queue)
    queue.join("a", "job", 1)
    queue.join("b", "job", 1)
    assert {serve(queue)[0] for _ in range(2)} == {"a", "b"}


def test_the_jobs_of_a_class_are_served_in_rotation_and_each_in_order() -> None:
    queue: FairQueue[int] = FairQueue({"a": 1})
    for job, cost in [("x", 1), ("x", 2), ("x", 3), ("y", 4), ("y", 5), ("z", 6)]:
        queue.join("a", job, cost)
    assert [serve(queue)[1:] for _ in range(6)] == [
        ("x", 1),
        ("y", 4),
        ("z", 6),
        ("x", 2),
        ("y", 5),
        ("x", 3),
    ]
    assert queue.first() is None


def test_an_entry_that_joins_first_is_the_first_of_its_job_alone() -> None:
    queue: FairQueue[int] = FairQueue()
    for job, cost in [("x", 1), ("y", 2), ("y", 3)]:
        queue.join("a", job, cost)
    queue.join("a", "y", 4, first=True)
    assert [serve(queue)[1:] for _ in range(4)] == [("x", 1), ("y", 4), ("y", 2), ("y", 3)]


def test_an_entry_that_leaves_is_not_served_and_can_leave_only_once() -> None:
    queue: FairQueue[str] = FairQueue()
    for entry in ("one", "two"):
        queue.join("a", "job", entry)
    assert queue.leave("a", "job", "one")
    assert not queue.leave("a", "job", "one")
    assert not queue.leave("b", "job", "two")
    assert [queued.entry for queued in queue.all()] == ["two"]
    assert queue.leave("a", "job", "two")
    assert (queue.first(), len(queue)) == (None, 0)


def test_first_among_some_jobs_follows_the_order_of_all() -> None:
    queue: FairQueue[int] = FairQueue({"a": 5, "b": 1})
    for number, place in enumerate(["ax", "by", "av", "bw", "ay"]):
        queue.join(place[0], place[1], number)
    entries = []
    while (queued := queue.first(among={"y", "w", "v"})) is not None:
        entries.append(queued.entry)
        queue.serve(queued, 1)
    assert entries == [2, 1, 4, 3]
    assert queue.first(among={"z"}) is None
    assert len(queue) == 1
