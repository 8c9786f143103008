"""Tests of what is said while no result arrives."""

from __future__ import annotations

from dragoman_producer.watch import NO_RESULT, Quiet


def test_a_silence_is_reported_once_and_again_after_a_result() -> None:
    reported: list[str] = []
    quiet = Quiet(reported.append, quiet_s=0)
    quiet.queued()
    quiet.queued()
    assert reported == [NO_RESULT]
    quiet.heard()
    quiet.queued()
    assert reported == [NO_RESULT, NO_RESULT]


def test_a_queued_job_is_no_silence_before_its_time() -> None:
    reported: list[str] = []
    Quiet(reported.append, quiet_s=3_600).queued()
    assert reported == []
