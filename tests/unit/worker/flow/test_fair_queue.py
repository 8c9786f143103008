"""Do lanes share by weight, does none of them wait for ever, and has each room when it wakes?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.flow.fair_queue import FairQueue, Intake
from dragoman_worker.ports import Capacity

LANES = "abc"
class_weights = st.fixed_dictionaries({priority: st.integers(1, 20) for priority in LANES})
costs = st.lists(st.tuples(st.sampled_from(LANES), st.integers(1, 50)), min_size=1, max_size=300)


def serve(turns: FairQueue[int]) -> tuple[str, str, int]:
    """Serve whoever is next: an entry is its own cost."""
    turn = turns.first()
    assert turn is not None
    turns.serve(turn, turn.entry)
    return turn.priority, turn.line, turn.entry


@given(class_weights, st.data())
def test_lanes_that_all_wait_are_served_by_weight_to_within_an_entry_of_each(
    weights: dict[str, int], data: st.DataObject
) -> None:
    turns: FairQueue[int] = FairQueue(weights)
    served, largest = dict.fromkeys(LANES, 0), 50
    for number in range(data.draw(st.integers(1, 100))):
        for priority in LANES:  # never empty, whatever the pattern in which lines come
            while turns.waiting(priority) < 2:
                cost = data.draw(st.integers(1, largest)) if number < 20 else 1 + number % largest
                turns.join(priority, f"line {data.draw(st.integers(0, 3))}", cost)
        priority, _, cost = serve(turns)
        served[priority] += cost
        for one in LANES:
            for other in LANES:
                apart = served[one] / weights[one] - served[other] / weights[other]
                assert apart <= largest / weights[one] + largest / weights[other] + 1e-6


@given(class_weights, costs, st.lists(st.booleans(), max_size=600))
def test_whoever_waits_is_served_and_a_turn_is_there_as_long_as_anybody_waits(
    weights: dict[str, int], arrivals: list[tuple[str, int]], serves: list[bool]
) -> None:
    turns: FairQueue[int] = FairQueue(weights)
    coming, waiting = list(reversed(arrivals)), Counter[tuple[str, int]]()
    for serves_now in [*serves, *[False] * len(arrivals), *[True] * len(arrivals)]:
        if not serves_now and coming:
            priority, cost = coming.pop()
            turns.join(priority, "line", cost)
            waiting[priority, cost] += 1
        elif len(turns):
            priority, _, cost = serve(turns)
            waiting[priority, cost] -= 1
        assert len(turns) == waiting.total() == sum(map(turns.waiting, LANES))
        assert (turns.first() is None) == (len(turns) == 0)
    assert waiting.total() == 0


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 50))
def test_whoever_wakes_in_a_lane_is_the_next_but_one_at_worst(
    weight: int, other: int, cost: int
) -> None:
    turns: FairQueue[int] = FairQueue({"a": weight, "b": other})
    for _ in range(20):
        turns.join("b", "line", cost)
    for _ in range(10):
        serve(turns)
    turns.join("a", "line", cost)
    assert "a" in {serve(turns)[0] for _ in range(2)}


def test_the_lightest_lane_beside_the_heaviest_has_its_turn_in_a_thousand() -> None:
    turns: FairQueue[int] = FairQueue({"heavy": 1000, "light": 1})
    for priority in ["heavy"] * 3003 + ["light"] * 4:
        turns.join(priority, "line", 1)
    priorities = [serve(turns)[0] for _ in range(3003)]
    at = [number for number, priority in enumerate(priorities) if priority == "light"]
    assert at == pytest.approx([0, 1001, 2002], abs=2)


def test_a_lane_that_slept_has_saved_up_no_credit() -> None:
    turns: FairQueue[int] = FairQueue({"a": 1, "b": 1})
    for _ in range(200):
        turns.join("a", "line", 1)
    for _ in range(100):
        serve(turns)
    for _ in range(100):
        turns.join("b", "line", 1)
    assert Counter(serve(turns)[0] for _ in range(20)) == {"a": 10, "b": 10}


def test_a_lane_that_was_alone_owes_nothing_when_another_wakes() -> None:
    turns: FairQueue[int] = FairQueue({"a": 1, "b": 1})
    for number in range(3):
        turns.join("b" if number == 2 else "a", "line", 1000)
        serve(turns)
    turns.join("a", "line", 1)
    turns.join("b", "line", 1)
    assert {serve(turns)[0] for _ in range(2)} == {"a", "b"}


def test_the_lines_of_a_lane_take_turns_and_keep_their_order() -> None:
    turns: FairQueue[int] = FairQueue({"a": 1})
    for line, cost in [("x", 1), ("x", 2), ("x", 3), ("y", 4), ("y", 5), ("z", 6)]:
        turns.join("a", line, cost)
    assert [serve(turns)[1:] for _ in range(6)] == [
        ("x", 1),
        ("y", 4),
        ("z", 6),
        ("x", 2),
        ("y", 5),
        ("x", 3),
    ]
    assert turns.first() is None


def test_who_leaves_is_not_served_and_leaves_but_once() -> None:
    turns: FairQueue[str] = FairQueue()
    for entry in ("one", "two"):
        turns.join("a", "line", entry)
    assert turns.leave("a", "line", "one")
    assert not turns.leave("a", "line", "one")
    assert not turns.leave("b", "line", "two")
    assert [turn.entry for turn in turns.all()] == ["two"]
    assert turns.leave("a", "line", "two")
    assert (turns.first(), len(turns)) == (None, 0)


def test_the_first_of_some_lines_is_found_by_the_order_of_all() -> None:
    turns: FairQueue[int] = FairQueue({"a": 5, "b": 1})
    for number, place in enumerate(["ax", "by", "av", "bw", "ay"]):
        turns.join(place[0], place[1], number)
    entries = []
    while (turn := turns.first(among={"y", "w", "v"})) is not None:
        entries.append(turn.entry)
        turns.serve(turn, 1)
    assert entries == [2, 1, 4, 3]
    assert turns.first(among={"z"}) is None
    assert len(turns) == 1


# --- the hand -------------------------------------------------------------------------------------


def test_one_lane_has_the_whole_hand_and_asks_once_there_is_room_worth_a_poll() -> None:
    intake = Intake({"only": 7}, jobs=64, size=1_000)
    assert intake.capacity() == Capacity(64)
    for _ in range(59):
        intake.enter("only", 1)
    assert intake.capacity() == Capacity(5)
    intake.enter("only", 1)
    assert intake.capacity() == Capacity(0), "four jobs of room, which is a sixteenth"
    for _ in range(10):
        intake.leave("only", 1)
    assert intake.capacity() == Capacity(14)
    intake.enter("only", 950)
    assert intake.capacity() == Capacity(0), "as many bytes as may be in hand"


def test_a_backlog_of_one_lane_leaves_the_others_their_room() -> None:
    intake = Intake({"interactive": 8, "bulk": 1}, jobs=90, size=10_000)
    while (capacity := intake.capacity()).priorities is not None and capacity.priorities["bulk"]:
        intake.enter("bulk", 1)
    assert intake.held()["bulk"] == 50, "its ninth of the half that is reserved, and what is shared"
    assert capacity.priorities == {"interactive": 40, "bulk": 0}
    assert capacity.jobs == 40
    intake.enter("interactive", 10_000)
    assert intake.capacity() == Capacity(0, {"interactive": 0, "bulk": 0})


def test_bytes_of_one_lane_take_no_room_from_the_others() -> None:
    intake = Intake({"interactive": 1, "bulk": 1}, jobs=100, size=1_000)
    intake.enter("bulk", 5_000_000)
    assert intake.capacity().priorities == {"interactive": 75, "bulk": 0}
    intake.leave("bulk", 5_000_000)
    assert intake.capacity() == Capacity(100, {"interactive": 75, "bulk": 75})


@given(
    class_weights,
    st.integers(1, 200),
    st.lists(st.tuples(st.sampled_from(LANES), st.booleans()), max_size=300),
)
def test_the_hand_overflows_by_nobody_and_a_lane_with_nothing_in_it_has_room(
    weights: dict[str, int], jobs: int, steps: list[tuple[str, bool]]
) -> None:
    intake = Intake(weights, jobs=jobs, size=10**9)
    for priority, enters in steps:
        capacity = intake.capacity()
        assert capacity.priorities is not None
        assert all(0 <= capacity.priorities[each] <= capacity.jobs for each in LANES)
        assert capacity.jobs <= sum(capacity.priorities.values())
        if enters and capacity.priorities[priority]:
            intake.enter(priority, 1)
        elif not enters and intake.held()[priority]:
            intake.leave(priority, 1)
        held = intake.held()
        assert sum(held.values()) <= max(jobs, len(LANES))
        assert all(intake.capacity().priorities[each] for each in LANES if not held[each])  # type: ignore[index]


@pytest.mark.parametrize("taken", ["ab", "ba", "abc", "cba"])
def test_all_lanes_taking_all_that_they_may_fill_the_hand_exactly(taken: str) -> None:
    intake = Intake({"a": 8, "b": 2, "c": 2}, jobs=96, size=10**9)
    capacity = intake.capacity()
    assert capacity.priorities is not None
    left = capacity.jobs
    for priority in taken:
        for _ in range(min(left, capacity.priorities[priority])):
            intake.enter(priority, 1)
            left -= 1
    assert left == 0 or set(taken) != set("abc")
    assert sum(intake.held().values()) <= 96
