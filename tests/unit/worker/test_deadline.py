"""Tests of the time budget that the steps of a shutdown share."""

from __future__ import annotations

from dragoman_worker.deadline import Deadline


def test_the_time_left_falls_to_zero_and_never_below() -> None:
    now = [100.0]
    deadline = Deadline.after(10, clock=lambda: now[0])
    assert (deadline.left_s, deadline.passed) == (10.0, False)
    now[0] = 109.0
    assert deadline.left_s == 1.0
    now[0] = 150.0
    assert (deadline.left_s, deadline.passed) == (0.0, True)


def test_a_step_gets_its_own_limit_or_the_time_left() -> None:
    now = [0.0]
    deadline = Deadline.after(10, clock=lambda: now[0])
    assert deadline.at_most(3) == 3
    now[0] = 8.0
    assert deadline.at_most(3) == 2.0
    now[0] = 20.0
    assert deadline.at_most(3) == 0.0


def test_a_deadline_of_zero_seconds_has_passed() -> None:
    assert Deadline.after(0).passed
