"""Admission keeps the engine full and not overfull: simulated scheduler, and properties."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.flow.admission import Admission, Bounds, Seen
from dragoman_worker.ports import EngineLimits, EngineStats
from dragoman_worker.settings import LimitsSettings
from support.fakes.simulated_engine import BLOCK, Engine, Run, texts

ENGINE = EngineLimits(64, 2048, 4096, 10_000)


def seen(
    running: int = 64,
    waiting: int = 0,
    usage: float | None = 0.5,
    preemptions: int = 0,
    *,
    tokens: int = 12_000,
    hold_back: bool = True,
) -> Seen:
    return Seen(EngineStats(running, waiting, usage, preemptions), tokens, hold_back)


def backlog(
    seqs: int, blocks: int, seed: int = 1, *, long_share: float = 0.0, unlimited: bool = False
) -> Run:
    """Run 30 s of endless work; `unlimited` has no bound on tokens and is not steered."""
    engine = Engine(seqs, blocks)
    limits = LimitsSettings(max_engine_tokens=10**9) if unlimited else LimitsSettings()
    admission = Admission(limits, engine.limits)
    work = texts(seed, long_share=long_share)
    return Run(engine, work, admission, steered=not unlimited).until(30)


# --- in a simulated engine ------------------------------------------------------------------------


@pytest.mark.parametrize("long_share", [0.0, 0.1])
@pytest.mark.parametrize(("seqs", "blocks"), [(64, 400), (128, 800), (16, 200)])
def test_throughput_is_kept_and_preemptions_decline(
    seqs: int, blocks: int, long_share: float
) -> None:
    steered = backlog(seqs, blocks, long_share=long_share)
    flooded = backlog(seqs, blocks, long_share=long_share, unlimited=True)
    assert steered.tokens_a_second(10) >= 0.85 * flooded.tokens_a_second(10)
    assert steered.engine.preemptions <= max(3, 0.3 * flooded.engine.preemptions)
    if not long_share:
        late = steered.engine.preemptions - engine_preemptions(steered, 20)
        assert late <= 0.1 * sum(at > 20 for at, _ in steered.done) + 1


def test_steering_is_1_6_times_as_fast_as_reserving_the_longest_outputs() -> None:
    steered, engine = backlog(64, 400), Engine(64, 400)
    pessimist = LimitsSettings(max_engine_tokens=400 * BLOCK)
    by_reservation = Run(engine, texts(1), Admission(pessimist, engine.limits)).until(30)
    assert steered.tokens_a_second(10) >= 1.6 * by_reservation.tokens_a_second(10)


def test_an_engine_with_a_large_kv_cache_runs_all_its_sequences() -> None:
    run = backlog(64, 2000)
    late = [stats for at, _, _, stats in run.ticks if at > 20]
    assert min(stats.running for stats in late) >= 55
    assert run.engine.preemptions == 0
    assert run.ticks[-1][1] == 77, "and the bound on items is not changed"


@pytest.mark.parametrize("tokens", [None, 10**9])
def test_the_number_waiting_inside_the_engine_stays_near_the_margin(tokens: int | None) -> None:
    """Where a setting admits any number of tokens, the bound on items alone must limit them."""
    engine = Engine(512, 800)
    admission = Admission(LimitsSettings(max_engine_tokens=tokens), engine.limits)
    run = Run(engine, texts(3), admission).until(25)
    waiting = [stats.waiting for at, _, _, stats in run.ticks if at > 10]
    margin = 615 - 512
    assert sum(waiting) / len(waiting) <= 1.2 * margin
    if tokens is None:
        assert max(waiting) <= margin


def test_tokens_fall_soon_after_texts_grow_longer() -> None:
    """The overcommitment learnt from short outputs is reduced as outputs fill their budgets."""
    engine = Engine(64, 600)
    short = itertools.islice(texts(1, shortest=5, longest=20), 8_000)
    work = itertools.chain(short, texts(2, shortest=150, longest=200))
    run = Run(engine, work, Admission(LimitsSettings(), engine.limits)).until(80)
    half, end = (engine_preemptions(run, after) for after in (60, 80))
    assert end - half <= 0.1 * sum(at > 60 for at, _ in run.done) + 3


def engine_preemptions(run: Run, at: float) -> int:
    return max(stats.preemptions for when, _, _, stats in run.ticks if when <= at)


@given(
    seqs=st.integers(1, 96),
    blocks=st.integers(20, 1500),
    seed=st.integers(0, 1_000),
    long_share=st.sampled_from([0.0, 0.02]),
)
def test_bounds_stay_within_their_limits_and_work_goes_on(
    seqs: int, blocks: int, seed: int, long_share: float
) -> None:
    engine = Engine(seqs, max(blocks, 170))  # the longest text fits, as vLLM makes sure
    admission = Admission(LimitsSettings(), engine.limits)
    run = Run(engine, texts(seed, long_share=long_share), admission).until(6)
    kv = engine.limits.kv_cache_tokens
    for _, items, tokens, _ in run.ticks:
        assert 1 <= items <= seqs * 1.2 + 1
        assert 0.1 * kv - 1 <= tokens <= 8 * kv + 1
    assert run.done or run.now < 6 or seqs == 1


# --- tick by tick ---------------------------------------------------------------------------------


@given(
    ticks=st.lists(
        st.tuples(
            st.integers(0, 64),
            st.integers(0, 400),
            st.floats(0, 1),
            st.integers(0, 30),
            st.integers(0, 200_000),
            st.booleans(),
        ),
        max_size=200,
    )
)
def test_no_stats_move_the_bounds_out_of_their_limits(
    ticks: list[tuple[int, int, float, int, int, bool]],
) -> None:
    admission, preemptions = Admission(LimitsSettings(), ENGINE), 0
    for running, waiting, usage, preempted, tokens, hold_back in ticks:
        preemptions += preempted
        bounds = admission.steer(
            seen(running, waiting, usage, preemptions, tokens=tokens, hold_back=hold_back)
        )
        assert 8 <= bounds.items <= 77
        assert 1_000 <= bounds.tokens <= 80_000


def test_bounds_start_from_the_engines_limits() -> None:
    assert Admission(LimitsSettings(), ENGINE).bounds == Bounds(77, 12_000)


@pytest.mark.parametrize(
    ("seqs", "fill", "items"), [(1, 1.2, 2), (2, 1.2, 3), (10, 1.2, 12), (5, 1.0, 5)]
)
def test_the_margin_is_at_least_one_item_in_a_small_engine(
    seqs: int, fill: float, items: int
) -> None:
    engine = EngineLimits(seqs, 2048, 4096, 10_000)
    assert Admission(LimitsSettings(engine_oversubscription=fill), engine).bounds.items == items


def test_explicit_settings_are_never_steered() -> None:
    admission = Admission(LimitsSettings(max_engine_items=9, max_engine_tokens=700), ENGINE)
    for number in range(50):
        assert admission.steer(seen(1, 60, 1.0, 5 * number)) == Bounds(9, 700)
        assert admission.steer(seen(64, 0, 0.01, 5 * number)) == Bounds(9, 700)


def test_an_engine_that_reports_no_usage_is_not_steered() -> None:
    admission = Admission(LimitsSettings(), ENGINE)
    for _ in range(50):
        assert admission.steer(seen(0, 300, None)) == Bounds(77, 12_000)


def test_tokens_rise_only_if_they_are_the_limiting_bound() -> None:
    def after(**changed: Any) -> int:
        admission = Admission(LimitsSettings(), ENGINE)
        for _ in range(20):
            admission.steer(seen(**{"running": 40, **changed}))
        return admission.bounds.tokens

    assert after() > 20_000
    assert after(hold_back=False) == 12_000, "no item waits, or the bound on items is reached"
    assert after(waiting=20) == 12_000, "the engine has enough to choose from"


def test_one_preemption_reduces_the_tokens_once() -> None:
    """Until the bound has taken effect, further preemptions have the same cause."""
    admission = Admission(LimitsSettings(), ENGINE)
    admission.steer(seen(usage=0.95))
    cut = admission.steer(seen(60, 4, 1.0, 3, tokens=12_000)).tokens
    assert 11_000 < cut < 11_500
    for number in range(4, 10):
        assert admission.steer(seen(60, 4, 1.0, number, tokens=11_900)).tokens == cut
    assert admission.steer(seen(60, 4, 1.0, 10, tokens=cut)).tokens < cut


def test_items_in_transit_do_not_count_as_waiting_in_the_engine() -> None:
    """A slow event loop has outputs that it has not read; fewer items would starve the engine."""
    admission = Admission(LimitsSettings(), ENGINE)
    in_transit = EngineStats(24, 50, 0.1, 0, in_transit=45)
    for _ in range(50):
        bounds = admission.steer(Seen(in_transit, 12_000, tokens_hold_back=False))
        assert bounds.items == 77


def test_a_burst_of_prompts_lowers_the_items_by_a_tenth_per_tick() -> None:
    admission = Admission(LimitsSettings(), ENGINE)
    assert admission.steer(seen(5, 72)).items == 69
    assert admission.steer(seen(50, 19)).items == 63
    for _ in range(10):
        admission.steer(seen(64, 5))
    assert admission.bounds.items == 77
