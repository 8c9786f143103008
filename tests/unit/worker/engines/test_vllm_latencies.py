"""Tests of the times between tokens, beside the histogram that observes one after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from dragoman_worker.engines.vllm.patches.latencies import (
    counting_together,
    observe_all,
    stat_loggers,
)

BOUNDS = (0.01, 0.025, 0.1, 1.0)


def histogram(registry: CollectorRegistry) -> Any:
    made = Histogram("seconds", "", ["engine"], registry=registry, buckets=BOUNDS)
    return made.labels("0")


def samples(registry: CollectorRegistry) -> dict[Any, float]:
    return {
        (sample.name, sample.labels.get("le")): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


@given(st.lists(st.sampled_from([*BOUNDS, 0.0, 0.02, 5.0]) | st.floats(0, 2)))
def test_the_histogram_is_as_if_each_were_observed(values: list[float]) -> None:
    together, one_by_one = CollectorRegistry(), CollectorRegistry()
    observe_all(histogram(together), values)
    alone = histogram(one_by_one)
    for value in values:
        alone.observe(value)
    assert samples(together) == pytest.approx(samples(one_by_one))


def test_a_histogram_of_another_make_observes_value_by_value() -> None:
    seen: list[float] = []
    observe_all(SimpleNamespace(observe=seen.append), [0.1, 0.2, 0.1])
    assert sorted(seen) == [0.1, 0.1, 0.2]


class Base:
    """The part of vLLM's logger that is extended."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.histogram_inter_token_latency = {0: histogram(self.registry)}
        self.recorded: list[Any] = []

    def record(self, scheduler_stats: Any, iteration_stats: Any, **others: Any) -> None:
        left = getattr(iteration_stats, "inter_token_latencies_iter", None)
        self.recorded.append((scheduler_stats, left, others))


def test_vllm_records_everything_else_itself() -> None:
    made: Any = counting_together(Base)()
    made.record("s", SimpleNamespace(inter_token_latencies_iter=[0.02, 0.02]), engine_idx=0)
    made.record("s", None, mm_cache_stats=None, engine_idx=0)
    assert made.recorded == [
        ("s", [], {"engine_idx": 0}),
        ("s", None, {"mm_cache_stats": None, "engine_idx": 0}),
    ]
    assert samples(made.registry)["seconds_count", None] == 2


def test_a_logger_without_that_histogram_is_left_alone() -> None:
    made: Any = counting_together(Base)()
    del made.histogram_inter_token_latency
    made.record("s", SimpleNamespace(inter_token_latencies_iter=[0.02]))
    assert made.recorded == [("s", [0.02], {})]


def test_without_statistics_vllm_gets_no_logger() -> None:
    assert stat_loggers(SimpleNamespace(disable_log_stats=True)) == {}
