"""Is one budget shared fairly by all steps of a shutdown?"""

from __future__ import annotations

from dragoman_worker.deadline import Deadline


def test_what_is_left_shrinks_to_nothing_and_never_below() -> None:
    now = [100.0]
    deadline = Deadline.after(10, clock=lambda: now[0])
    assert (deadline.left_s, deadline.passed) == (10.0, False)
    now[0] = 109.0
    assert deadline.left_s == 1.0
    now[0] = 150.0
    assert (deadline.left_s, deadline.passed) == (0.0, True)


def test_a_step_gets_its_own_bound_or_what_is_left() -> None:
    now = [0.0]
    deadline = Deadline.after(10, clock=lambda: now[0])
    assert deadline.at_most(3) == 3
    now[0] = 8.0
    assert deadline.at_most(3) == 2.0
    now[0] = 20.0
    assert deadline.at_most(3) == 0.0


def test_no_time_at_all_has_passed_at_once() -> None:
    assert Deadline.after(0).passed
