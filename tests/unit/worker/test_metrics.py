"""Tests of the lock-free histograms against Prometheus' own."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from dragoman_schemas.failures import FailureCode
from dragoman_worker.metrics import Metrics, TimesFamily

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


def test_every_failure_is_counted_from_zero_so_that_the_first_burst_is_an_increase() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.start_gates(["tags"])
    page = generate_latest(metrics.registry).decode()
    for code in FailureCode:
        assert f'dragoman_dead_letters_total{{code="{code}"}} 0.0' in page
        assert f'dragoman_retries_total{{code="{code}"}} 0.0' in page
    for outcome in ("ok", "rebalanced", "failed"):
        assert f'dragoman_commits_total{{outcome="{outcome}"}} 0.0' in page
    for action in ("warned", "retried", "fixed", "failed"):
        assert f'dragoman_gates_total{{action="{action}",gate="tags"}} 0.0' in page


def test_a_job_of_a_bulk_load_that_waits_for_hours_is_not_beyond_the_last_bucket() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.queue_seconds.observe(20 * 3600)
    page = generate_latest(metrics.registry).decode()
    assert 'dragoman_job_seconds_bucket{le="86400.0",phase="queue"} 1.0' in page
    assert 'dragoman_job_seconds_bucket{le="21600.0",phase="queue"} 0.0' in page
