"""The wait between two tries doubles with jitter, and has a bound."""

from __future__ import annotations

import pytest

from dragoman_worker.backoff import backoff, pause_s


def test_pauses_double_with_jitter_up_to_their_bound() -> None:
    wait = backoff(0.4, 5.0)
    for failures, longest in enumerate((0.4, 0.8, 1.6, 3.2, 5.0, 5.0), 1):
        pauses = [pause_s(wait, failures) for _ in range(200)]
        assert longest / 2 <= min(pauses) < longest * 5 / 8
        assert longest * 7 / 8 < max(pauses) <= longest


@pytest.mark.parametrize("failures", [10, 1_024, 1_000_000])
def test_pauses_stay_bounded_after_any_number_of_failures(failures: int) -> None:
    assert 5.0 <= pause_s(backoff(0.2, 10.0), failures) <= 10.0


def test_no_pause_is_asked_for_by_zero() -> None:
    assert pause_s(backoff(0, 0), 3) == 0
