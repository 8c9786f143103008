"""Do the readings mean the same whatever vLLM's gauges show at that moment?"""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge

from dragoman_worker.engines.vllm.stats import VllmGauges
from dragoman_worker.ports import EngineStats


def gauges(
    running: list[float],
    usage: list[float],
    preemptions: float = 0,
    waiting: float | None = None,
) -> VllmGauges:
    registry = CollectorRegistry()
    run = Gauge("vllm:num_requests_running", "", ["engine"], registry=registry)
    kv = Gauge("vllm:kv_cache_usage_perc", "", ["engine"], registry=registry)
    Counter("vllm:num_preemptions", "", ["engine"], registry=registry).labels("0").inc(preemptions)
    if waiting is not None:
        wait = Gauge("vllm:num_requests_waiting", "", ["engine"], registry=registry)
        wait.labels("0").set(waiting)
    for number, (a, b) in enumerate(zip(running, usage, strict=True)):
        run.labels(str(number)).set(a)
        kv.labels(str(number)).set(b)
    return VllmGauges(registry)


def test_what_does_not_run_yet_waits() -> None:
    assert gauges([5], [0.25], 3).stats(8, 5) == EngineStats(5, 3, 0.25, 3)


@pytest.mark.parametrize(("waiting", "in_transit"), [(0, 3), (2, 1), (3, 0), (7, 0)])
def test_what_vllm_does_not_know_of_is_on_its_way(waiting: float, in_transit: int) -> None:
    now = gauges([5], [0.25], waiting=waiting).stats(8, 5)
    assert (now.waiting, now.in_transit) == (3, in_transit)


def test_gauges_that_stand_still_in_an_idle_engine_are_not_believed() -> None:
    assert gauges([5], [0.25]).stats(0, 5) == EngineStats(0, 0, 0.0, 0)


def test_data_parallel_engines_are_summed_and_the_fullest_cache_counts() -> None:
    assert gauges([2, 3], [0.5, 0.25]).stats(6, 8) == EngineStats(5, 1, 0.5, 0)


@pytest.mark.parametrize(("in_flight", "running"), [(3, 3), (9, 8)])
def test_without_statistics_as_many_run_as_can(in_flight: int, running: int) -> None:
    now = VllmGauges(CollectorRegistry()).stats(in_flight, 8)
    assert now == EngineStats(running, in_flight - running, None, 0)
