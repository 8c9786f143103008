"""Tests that the bottleneck is the limit that would have to change for more throughput."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.health.bottleneck import (
    Cause,
    Feed,
    Load,
    LoadWindow,
    Moment,
    bottleneck,
    feed_limit,
    together,
)
from dragoman_worker.ports import EngineLimits, EngineStats

LIMITS = EngineLimits(512, 8192, 4096, 700_000, devices=1, full_batch=384)


def moment(
    running: int = 506,
    waiting: int = 100,
    usage: float | None = 0.4,
    **changed: Any,
) -> Moment:
    """Return a moment of an 8B engine with 512 sequences and a backlog, with changes."""
    held = changed.get("held", running + waiting)
    full = Moment(
        no_broker=False,
        queued=10_000,
        storing=2,
        stalled=0,
        in_flight=1_800,
        held=held,
        items=615,
        tokens=840_000,
        tokens_hold_back=False,
        engine=EngineStats(running, waiting, usage, 0),
        preempted=0,
        finished=94,
        loop_busy=0.3,
        loop_late_s=0.002,
        gpu_busy=0.97,
    )
    return replace(full, **changed)


def load(*moments: Moment, limits: EngineLimits = LIMITS, most: int | None = None) -> Load:
    window = LoadWindow(limits, most_items=most or moments[0].items, every_s=0.5)
    for each in moments:
        window.add(each)
    return window.load()


def limited(seqs: int, **changed: Any) -> EngineLimits:
    return replace(LIMITS, max_num_seqs=seqs, **changed)


CASES: dict[str, tuple[Moment, EngineLimits, Cause]] = {
    "nothing to do": (moment(0, 0, 0.0, queued=0, in_flight=0), LIMITS, Cause.QUEUE_EMPTY),
    "the last few jobs": (moment(30, 0, 0.02, queued=0), LIMITS, Cause.QUEUE_EMPTY),
    "a trickle": (moment(3, 0, 0.01, queued=2), LIMITS, Cause.QUEUE_EMPTY),
    "a queue that is not delivered": (moment(40, 0, 0.03), LIMITS, Cause.FEED),
    "all permits held by jobs that wait for Redis": (
        moment(0, 0, 0.0, held=615, storing=1_800, stalled=1_800),
        LIMITS,
        Cause.FEED,
    ),
    "the last jobs, stuck at Redis": (
        moment(0, 0, 0.0, held=20, queued=20, storing=20, stalled=20),
        LIMITS,
        Cause.FEED,
    ),
    "no broker": (moment(0, 0, 0.0, queued=0, in_flight=0, no_broker=True), LIMITS, Cause.FEED),
    "16 sequences on a large GPU": (
        moment(15, 4, 0.01, items=20),
        limited(16),
        Cause.SEQUENCES,
    ),
    "256 sequences where the GPU could run more": (
        moment(252, 50, 0.2, items=308),
        limited(256),
        Cause.SEQUENCES,
    ),
    "a bound of the worker on the items": (moment(25, 0, 0.02, items=25), LIMITS, Cause.SEQUENCES),
    "2 sequences on a CPU": (
        moment(2, 1, 0.01, items=3, gpu_busy=None),
        limited(2, devices=0, full_batch=32),
        Cause.SEQUENCES,
    ),
    "a full cache and many preempted": (
        moment(100, 103, 0.97, preempted=20, items=203),
        LIMITS,
        Cause.KV_CACHE,
    ),
    "a full cache, held there by the permits' tokens": (
        moment(100, 0, 0.9, tokens_hold_back=True),
        LIMITS,
        Cause.KV_CACHE,
    ),
    "a cache of few blocks": (
        moment(3, 0, 0.7, tokens_hold_back=True, items=20),
        limited(16),
        Cause.KV_CACHE,
    ),
    "all sequences run, and they preempt each other": (
        moment(500, 100, 0.98, preempted=20),
        LIMITS,
        Cause.KV_CACHE,
    ),
    "a busy GPU": (moment(), LIMITS, Cause.COMPUTE),
    "a busy GPU, a preemption now and then": (
        moment(usage=0.5, preempted=1),
        LIMITS,
        Cause.COMPUTE,
    ),
    "one engine with a small model": (
        moment(1_010, 200, 0.1, items=1_229, gpu_busy=0.42),
        limited(1_024),
        Cause.ENGINE_CPU,
    ),
    "prompts that the engine reads too slowly": (moment(50, 500, 0.1), LIMITS, Cause.COMPUTE),
    "no NVML, or no GPU": (
        moment(60, 16, 0.1, items=77, gpu_busy=None),
        limited(64, devices=0, full_batch=32),
        Cause.COMPUTE,
    ),
    "an engine without gauges": (moment(usage=None), LIMITS, Cause.COMPUTE),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_the_limit_that_would_have_to_change(case: str) -> None:
    seen, limits, cause = CASES[case]
    assert bottleneck(load(*[seen] * 20, limits=limits)) is cause


def test_a_bound_lowered_for_a_crowded_engine_is_not_the_limit_of_sequences() -> None:
    """Prompts are read too slowly, so admission lowered the bound to a little above the running."""
    crowded = moment(24, 110, 0.1, items=134, held=134)
    assert bottleneck(load(*[crowded] * 20, most=615)) is Cause.COMPUTE


def test_a_few_moments_do_not_decide() -> None:
    hiccup = moment(0, 0, 0.0, held=615, storing=1_800)
    assert bottleneck(load(*[moment()] * 15, *[hiccup] * 5)) is Cause.COMPUTE
    assert bottleneck(load(*[hiccup] * 15, *[moment()] * 5)) is Cause.FEED


def test_a_sequence_that_has_just_finished_still_counts() -> None:
    """vLLM counts after finished sequences have left and before the next ones are admitted."""
    seen = [moment(2, 1, 0.01, items=3), moment(1, 2, 0.01, items=3)] * 10
    assert bottleneck(load(*seen, limits=limited(2))) is Cause.SEQUENCES


def test_moments_older_than_the_window_are_forgotten() -> None:
    assert bottleneck(load(*[moment(0, 0, 0.0, queued=0)] * 50, *[moment()] * 20)) is Cause.COMPUTE


def test_means_of_the_engine_cover_only_moments_in_which_it_was_fed() -> None:
    result = load(*[moment()] * 12, *[moment(10, 0, 0.0)] * 8)
    assert (result.running, result.waiting) == (506, 100)
    assert result.kv_cache_usage == pytest.approx(0.4)
    assert result.starved == pytest.approx(0.4)
    assert result.seconds == 10


@pytest.mark.parametrize(
    ("changed", "feed"),
    [
        ({}, Feed.FETCH),
        ({"in_flight": 0, "storing": 0}, Feed.FETCH),
        ({"loop_busy": 0.95, "storing": 1_700}, Feed.LOOP),
        ({"loop_late_s": 0.4}, Feed.LOOP),
        ({"storing": 1_700}, Feed.STORE),
        ({"storing": 20, "stalled": 20}, Feed.STORE),
    ],
)
def test_the_slowest_part_of_the_feed_is_found(changed: dict[str, Any], feed: Feed) -> None:
    assert feed_limit(load(moment(40, 0, 0.03, **changed))) is feed


def test_one_engine_that_does_not_answer_is_shown_for_all() -> None:
    loads = [load(moment()), load(moment(running=0, waiting=600, silent_s=30.0))]
    assert bottleneck(together(loads)) is Cause.NO_ANSWER


def test_replicas_are_judged_together_as_one_engine() -> None:
    four = [load(*[moment(380, 70, 0.2, items=461)] * 4, limits=limited(384))] * 4
    assert bottleneck(together(four)) is Cause.COMPUTE
    sixteen = [load(*[moment(15, 4, 0.01, items=20)] * 4, limits=limited(16))] * 4
    assert bottleneck(together(sixteen)) is Cause.SEQUENCES
    assert together(sixteen).max_num_seqs == 64


@given(
    running=st.integers(0, 600),
    waiting=st.integers(0, 600),
    usage=st.none() | st.floats(0, 1),
    queued=st.integers(0, 10_000),
    items=st.integers(1, 615),
    busy=st.none() | st.floats(0, 1),
)
def test_every_load_has_one_cause(
    running: int, waiting: int, usage: float | None, queued: int, items: int, busy: float | None
) -> None:
    seen = moment(running, waiting, usage, queued=queued, items=items, gpu_busy=busy)
    result = load(seen)
    assert bottleneck(result) in Cause
    assert bottleneck(together([result])) is bottleneck(result)


def test_an_engine_kept_empty_for_suspects_is_limited_by_the_quarantine() -> None:
    """Without the quarantine, a crash would look like a slow broker or a busy event loop."""
    result = load(moment(16, 0, 0.02, quarantined=300, loop_busy=0.9, stalled=1_000))
    assert bottleneck(result) is Cause.FEED
    assert feed_limit(result) is Feed.QUARANTINE
