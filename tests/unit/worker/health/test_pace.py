"""Tests of the lag estimates."""

from __future__ import annotations

import pytest

from dragoman_worker.health.sampler import Pace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("dragoman_worker.health.sampler.time.monotonic", lambda: now[0])
    return now


def test_the_lag_is_estimated_in_tokens_and_seconds(clock: list[float]) -> None:
    pace = Pace()
    clock[0] += 1
    assert pace.work(1_000, jobs=10, tokens=2_000) == (200_000, 100)
    assert pace.work(0, jobs=10, tokens=2_000) == (0, 0)


def test_before_the_first_job_the_lag_takes_infinite_seconds(clock: list[float]) -> None:
    pace = Pace()
    clock[0] += 1
    assert pace.work(50, jobs=0, tokens=0) == (0.0, float("inf"))


def test_an_idle_hour_does_not_lower_the_rate(clock: list[float]) -> None:
    pace = Pace()
    clock[0] += 1
    pace.work(1_000, jobs=10, tokens=2_000)
    for _ in range(3_600):
        clock[0] += 1
        pace.work(0, jobs=10, tokens=2_000)
    clock[0] += 1
    _, seconds = pace.work(1_000, jobs=20, tokens=4_000)
    assert seconds == pytest.approx(100)
