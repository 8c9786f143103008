"""Choice of the number of sequences, and of the given or the chosen settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman_worker.tuning.knee import (
    PATIENCE,
    RULE,
    WITHIN,
    ChosenPoint,
    Measured,
    choose,
    degrades,
    has_degraded,
    pays,
)
from dragoman_worker.tuning.tuner import Findings, Tuner

COUNTS = [2**power for power in range(11)]


def saturating(ceiling: float, half: float, step_s: float, noise: list[float]) -> list[Measured]:
    """Return points of saturating throughput, with latencies by Little's law."""
    points = []
    for count, shake in zip(COUNTS, noise, strict=True):
        rate = ceiling * count / (count + half) * (1 + shake)
        points.append(Measured(count, rate, decode_s=count / rate, p99_s=3 * step_s + count / rate))
    return points


def swept(points: list[Measured]) -> list[Measured]:
    """Return the points that a sweep measures before it stops."""
    for end in range(1, len(points) + 1):
        if has_degraded(points[:end]):
            return points[:end]
    return points


quiet = st.just([0.0] * len(COUNTS))
noisy = st.lists(st.floats(-0.01, 0.01), min_size=len(COUNTS), max_size=len(COUNTS))
curves = {"ceiling": st.floats(100, 1e5), "half": st.floats(0.5, 200), "step_s": st.floats(0, 1)}


@given(**curves, noise=quiet)
def test_the_chosen_point_of_a_saturating_curve_is_near_the_best(
    ceiling: float, half: float, step_s: float, noise: list[float]
) -> None:
    points = saturating(ceiling, half, step_s, noise)
    chosen = choose(swept(points)).sequences
    best = max(point.tokens_per_s for point in points)
    reached = next(point.tokens_per_s for point in points if point.sequences == chosen)
    # What the sweep leaves unseen: two steps below 5 %, and what follows them, ever less.
    assert reached >= (1 - WITHIN) * best * 0.9


@given(**curves, noise=noisy)
def test_noise_moves_the_choice_to_no_worse_a_point(
    ceiling: float, half: float, step_s: float, noise: list[float]
) -> None:
    measured = saturating(ceiling, half, step_s, noise)
    truth = saturating(ceiling, half, step_s, [0.0] * len(COUNTS))
    chosen = choose(swept(measured)).sequences
    best = max(point.tokens_per_s for point in truth)
    reached = next(point.tokens_per_s for point in truth if point.sequences == chosen)
    assert reached >= (1 - WITHIN - 0.02) * best * 0.9


@given(points=st.lists(st.floats(1, 1e6), min_size=1, max_size=len(COUNTS)))
def test_no_smaller_number_would_do_as_well(points: list[float]) -> None:
    measured = [Measured(c, rate, 0.01, 1.0) for c, rate in zip(COUNTS, points, strict=False)]
    chosen = choose(measured).sequences
    best = max(points)
    for point in measured:
        if point.sequences < chosen:
            assert point.tokens_per_s < (1 - WITHIN) * best


def test_the_measured_curve_of_an_8b_model_ends_at_its_knee() -> None:
    """docs/explanation/benchmarks-gpu.md: jobs/s by jobs in flight on an H200, 85 tokens a job."""
    rates = {16: 37.0, 32: 60.0, 64: 89.1, 128: 128.5, 256: 147.0, 512: 176.9, 1024: 175.4}
    points = [Measured(n, 85 * rate, n / (85 * rate), n / rate) for n, rate in rates.items()]
    choice = choose(points)
    assert choice.sequences == 512
    assert "1024 would change tokens/s by -0.8%" in choice.why


def test_the_sweep_goes_on_while_it_pays_and_ends_after_two_steps_that_only_cost() -> None:
    growing = [Measured(n, 100.0 * n, 0.01, 1.0) for n in COUNTS]
    assert swept(growing) == growing
    flat = [Measured(n, 800.0, n / 800, n / 8) for n in COUNTS]
    assert len(swept(flat)) == 1 + PATIENCE
    falling = [Measured(n, 800.0 / n, 0.01, 1.0) for n in COUNTS]
    assert len(swept(falling)) == 1 + PATIENCE


def test_one_bad_measurement_does_not_end_the_sweep() -> None:
    rates = [100.0, 200.0, 150.0, 700.0, 1300.0]
    points = [Measured(n, r, 0.01, 1.0) for n, r in zip(COUNTS, rates, strict=False)]
    assert not has_degraded(points)
    assert choose(points).sequences == 16


def test_more_sequences_without_gain_or_cost_are_no_degradation() -> None:
    best, same = Measured(8, 100.0, 0.01, 1.0), Measured(16, 101.0, 0.0105, 1.05)
    assert not pays(best, same)
    assert not degrades(best, same)
    assert degrades(best, Measured(16, 101.0, 0.02, 1.0))
    assert degrades(best, Measured(16, 101.0, 0.01, 2.0))
    assert degrades(best, Measured(16, 90.0, 0.01, 1.0))


@given(ceiling=st.floats(100, 1e4), factor=st.floats(0.01, 100))
def test_the_choice_does_not_depend_on_the_unit(ceiling: float, factor: float) -> None:
    points = saturating(ceiling, 16, 0.1, [0.0] * len(COUNTS))
    scaled = [Measured(p.sequences, p.tokens_per_s * factor, p.decode_s, p.p99_s) for p in points]
    assume(all(point.tokens_per_s > 0 for point in scaled))
    assert choose(points).sequences == choose(scaled).sequences


def test_the_rule_quotes_its_numbers_and_no_points_are_an_error() -> None:
    assert "5%" in RULE
    assert "3%" in RULE
    with pytest.raises(ValueError, match="empty"):
        choose([])


def verified(tokens_per_s: float, p99_ms: float) -> dict[str, Any]:
    return {
        "output_tokens_per_s": tokens_per_s,
        "latency_ms": {"p99": p99_ms},
        "decode_ms_per_token": 10.0,
        "limits": {"max_num_seqs": 64},
        "drive": {"items": None},
        "jobs": 100,
        "failed": 0,
    }


class OneRow:
    """Harness that returns the same row for every point."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    async def measure(self, point: object) -> dict[str, Any]:
        return self._row


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        ((1200, 1000), False),  # more throughput
        ((1000, 5000), True),  # no more, and slower
        ((1020, 2000), True),  # within noise, and slower
        ((1000, 400), False),  # no more, but faster
        ((960, 400), True),  # faster, but less
        ((140, 10), True),  # much less: that of a few sequences
    ],
)
async def test_chosen_settings_without_a_verified_gain_are_not_kept(
    chosen: tuple[float, float], kept: bool
) -> None:
    findings = Findings(
        {"limits": {"max_num_seqs": 64}}, choice=ChosenPoint(256, "", degraded=False)
    )
    findings.comparison["default"] = verified(1000, 1000)
    harness: Any = OneRow(verified(*chosen))
    settings: Any = None
    options: Any = type("Verify", (), {"stages": {"verify"}, "most_sequences": None})()
    await Tuner(harness, settings, settings, options, engines=1)._verify(findings)
    assert findings.keeps_given is kept
    assert findings.options == ({} if kept else {"max_num_seqs": 256})
    assert bool(findings.notes) is kept
