"""Percentiles, arrival rates and concurrency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.tuning.measure.statistics import arrivals, spread


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_a_percentile_is_a_value_that_its_share_does_not_exceed(values: list[int]) -> None:
    ranks = spread(values)
    assert ranks is not None
    for name, share in {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}.items():
        assert ranks[name] in values
        assert sum(value <= ranks[name] for value in values) >= share * len(values)
    assert ranks["max"] == max(values)


def test_no_values_have_no_percentile() -> None:
    assert spread([]) is None


def test_concurrency_is_the_rate_times_the_service_time() -> None:
    steady = arrivals([1_000 * n for n in range(101)])  # one a second
    assert steady is not None
    assert steady.jobs_per_s == pytest.approx(1.0)
    assert steady.concurrency(2.5) == pytest.approx((2.5, 2.5), rel=0.11)


def test_the_busiest_ten_seconds_are_reported_beside_the_mean() -> None:
    burst = [n * 100 for n in range(100)]  # ten a second for ten seconds
    rates = arrivals([*burst, 100_000])
    assert rates is not None
    assert rates.busiest_per_s == pytest.approx(10.0)
    assert rates.jobs_per_s == pytest.approx(1.0)


@pytest.mark.parametrize("stamps", [[], [5], [5, 5], [0, 900]])
def test_simultaneous_arrivals_have_no_rate(stamps: list[int]) -> None:
    assert arrivals(stamps) is None
