"""Tests of the lock-free histograms against Prometheus' own, and of the lag estimates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from dragoman_worker.metrics import Metrics, Pace, TimesFamily

BOUNDS = (0.005, 0.1, 1, 30)


@given(seconds=st.lists(st.floats(0, 100) | st.sampled_from([0.005, 0.1, 1.0, 30.0])))
def test_a_histogram_without_locks_exports_the_same_samples(seconds: list[float]) -> None:
    lock_free, reference = CollectorRegistry(), CollectorRegistry()
    family = TimesFamily("t", "Seconds.", BOUNDS, lock_free, label="phase", values=("a", "b"))
    known = Histogram("t", "Seconds.", ["phase"], buckets=BOUNDS, registry=reference)
    for phase in ("a", "b"):
        known.labels(phase)
    for second in seconds:
        family.by["a"].observe(second)
        known.labels("a").observe(second)
    assert list(samples(lock_free)) == list(samples(reference))


def samples(registry: CollectorRegistry) -> Iterator[tuple[str, dict[str, str], float]]:
    for metric in registry.collect():
        for sample in metric.samples:
            if not sample.name.endswith("_created"):
                yield sample.name, sample.labels, sample.value


def test_the_page_has_each_phase_and_its_help_once() -> None:
    page = generate_latest(Metrics(CollectorRegistry()).registry).decode()
    for phase in ("queue", "decode", "permit", "claim", "engine", "settle", "total"):
        assert f'dragoman_job_seconds_count{{phase="{phase}"}} 0.0' in page
    assert page.count("# TYPE dragoman_job_seconds histogram") == 1
    assert "dragoman_decode_seconds_per_token_bucket{le=" in page


def test_one_cause_is_set_with_the_stats_it_is_judged_by() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.limited_by("feed", {"queued": 12.0, "gpu_busy": None})
    metrics.limited_by("compute", {"queued": 7.0, "gpu_busy": None})
    page = generate_latest(metrics.registry).decode()
    assert 'dragoman_bottleneck{cause="compute"} 1.0' in page
    assert 'cause="feed"' not in page
    assert 'dragoman_load{stat="queued"} 7.0' in page
    assert "gpu_busy" not in page.replace("gpu_busy_ratio", "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("dragoman_worker.metrics.time.monotonic", lambda: now[0])
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
