"""Tests of the engine stats computed from vLLM's gauges in all their states."""

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


def test_a_request_that_is_not_running_is_waiting() -> None:
    assert gauges([5], [0.25], 3).stats(8, 5) == EngineStats(5, 3, 0.25, 3)


@pytest.mark.parametrize(("waiting", "in_transit"), [(0, 3), (2, 1), (3, 0), (7, 0)])
def test_a_request_that_vllm_does_not_count_yet_is_in_transit(
    waiting: float, in_transit: int
) -> None:
    now = gauges([5], [0.25], waiting=waiting).stats(8, 5)
    assert (now.waiting, now.in_transit) == (3, in_transit)


def test_stale_gauges_of_an_idle_engine_are_ignored() -> None:
    assert gauges([5], [0.25]).stats(0, 5) == EngineStats(0, 0, 0.0, 0)


def test_data_parallel_engines_are_summed_and_the_fullest_cache_is_reported() -> None:
    assert gauges([2, 3], [0.5, 0.25]).stats(6, 8) == EngineStats(5, 1, 0.5, 0)


@pytest.mark.parametrize(("in_flight", "running"), [(3, 3), (9, 8)])
def test_without_gauges_up_to_max_num_seqs_requests_count_as_running(
    in_flight: int, running: int
) -> None:
    now = VllmGauges(CollectorRegistry()).stats(in_flight, 8)
    assert now == EngineStats(running, in_flight - running, None, 0)
