"""Tests of how many requests a server gets at once, by its own counts."""

from __future__ import annotations

import pytest

from dragoman_worker.engines.openai.concurrency import CountedConcurrency


def learned(most: int = 1024, share: float = 0.125, running: int = 64) -> CountedConcurrency:
    """Return the concurrency of a server that was seen full with `running` requests."""
    made = CountedConcurrency(most, share)
    for second in range(2):
        made.counted(running, 30, float(second))
    return made


def keep_full(made: CountedConcurrency, capacity: int, seconds: range) -> list[int]:
    """Read the counts of a server that runs `capacity` at once each second, and list the limits."""
    limits = []
    for second in seconds:
        assert made.room(made.limit, float(second)) == 0
        made.counted(min(capacity, made.limit), max(0, made.limit - capacity), float(second))
        limits.append(made.limit)
    return limits


def test_a_server_gets_as_many_requests_as_it_runs_while_others_wait_there() -> None:
    made = CountedConcurrency(1024, 0.125)
    assert made.room(100, 0.0) == 924
    made.counted(40, 0, 0.0)  # none waits: it could run more
    made.counted(30, 70, 1.0)  # it is being filled
    made.counted(64, 36, 2.0)
    assert made.limit == 1024
    made.counted(64, 5, 3.0)
    assert made.limit == 64


def test_requests_enter_a_full_server_in_groups() -> None:
    made = learned()
    assert [made.room(64, 4.0), made.room(60, 4.1), made.room(57, 4.2)] == [0, 0, 0]
    assert [made.room(56, 4.3), made.room(57, 4.3), made.room(63, 4.3)] == [8, 7, 1]
    assert [made.room(64, 4.4), made.room(63, 4.5)] == [0, 0]


def test_a_group_waits_for_a_second_and_a_half_at_most() -> None:
    made = learned()
    assert [made.room(64, 4.0), made.room(63, 5.4), made.room(63, 5.6)] == [0, 0, 1]


def test_a_server_that_is_not_full_gets_a_request_at_once() -> None:
    made = learned()
    assert [made.room(63, 4.0), made.room(62, 4.0), made.room(63, 4.0)] == [1, 2, 1]


def test_a_small_server_and_a_share_of_nothing_know_no_groups() -> None:
    small, one_by_one = learned(running=8, share=0.0625), CountedConcurrency(64, 0.0)
    assert [small.room(8, 4.0), small.room(7, 4.0)] == [0, 1]
    assert [one_by_one.room(64, 4.0), one_by_one.room(63, 4.0)] == [0, 1]


def test_a_full_server_is_tried_with_more_ever_more_rarely() -> None:
    made = learned()
    limits = keep_full(made, 64, range(2, 602))
    assert set(limits) == {64, 80}
    assert limits[:60].count(80) > limits[-60:].count(80)
    assert limits[-240:].count(80) <= 6


def test_a_server_that_can_run_more_than_before_gets_more() -> None:
    made = learned()
    assert keep_full(made, 200, range(2, 60))[-1] in {200, 250}


def test_a_server_that_can_run_fewer_than_before_gets_fewer() -> None:
    made = learned()
    assert keep_full(made, 40, range(2, 6))[-1] in {40, 50}


def test_a_server_that_is_not_full_is_not_tried_with_more() -> None:
    made = learned()
    made.room(10, 2.0)
    for second in range(2, 300):
        made.counted(10, 0, float(second))
    assert made.limit == 64


@pytest.mark.parametrize("known", [False, True])
def test_a_server_that_asks_for_fewer_gets_fewer_and_slowly_more_again(known: bool) -> None:
    made = learned(most=100) if known else CountedConcurrency(100, 0.125)
    before = made.limit
    made.throttled()
    assert made.limit == int(before * 0.7)
    for _ in range(made.limit):
        made.answered(10, made.limit, 10.0)
    assert made.limit == int(before * 0.7) + 1
    for _ in range(20_000):
        made.answered(10, made.limit, 10.0)
    assert made.limit == before
