"""Stages of a whole run: what they are compared with, and how often the choice is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman_connections.settings import load_settings
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.harness import OutOfBudget, Point
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.tuner import Findings, TuneOptions, Tuner

Rate = Callable[[Point], float]
MOST = 8
ALL = frozenset({"batched_tokens", "memory", "replicas", "verify"})


class ScriptedHarness:
    """Harness of an engine for eight sequences: a rate for each point, and a row per key.

    A release of the engines is noted among the points, as one of the stage `release`.
    """

    reserve_s = 0.0
    reused: frozenset[str] = frozenset()

    def __init__(self, rate: Rate) -> None:
        self.asked: list[Point] = []
        self._rate = rate
        self._rows: dict[str, dict[str, Any]] = {}

    async def survey(self, _: Point) -> dict[str, Any]:
        return {"limits": {"max_num_seqs": MOST}, "items_per_job": {"p50": 1}}

    async def measure(self, point: Point, *, reserve_s: float = 0.0) -> dict[str, Any]:
        key = repr((point.drive, dict(point.options), point.engines, point.round))
        if key not in self._rows:
            self.asked.append(point)
            self._rows[key] = self._row(point)
        return self._rows[key]

    async def release(self) -> None:
        self.asked.append(Point("release", Drive()))

    def _row(self, point: Point) -> dict[str, Any]:
        most = point.options.get("max_num_seqs", MOST)
        rate = self._rate(point)
        if not rate:
            return {"refused": "engine.options.max_num_seqs: no memory"}
        numbers = {"jobs_per_s": rate, "output_tokens_per_s": rate, "jobs": 100, "failed": 0}
        limits = {"max_num_seqs": most, "max_num_batched_tokens": 2048, "devices": 1}
        return {
            **numbers,
            "limits": limits,
            "drive": {"items": point.drive.items},
            "options": dict(point.options),
            "replicas": point.engines,
            "latency_ms": {"p50": 1.0, "p99": 1.0},
            "decode_ms_per_token": 1.0,
            "kv_usage_max": 0.5,
            "preemptions": 0,
            "passes": 1.0,
        }


async def tuned(
    rate: Rate,
    stages: frozenset[str] = ALL,
    engines: int = 1,
    settings: dict[str, Any] | None = None,
) -> tuple[Findings, list[Point]]:
    scripted: Any = ScriptedHarness(rate)
    given = load_settings(WorkerSettings, None, {"engine.model": "some/model", **(settings or {})})
    sample: Any = type("Sample", (), {"arrivals": None})
    options = TuneOptions(sequences=(2, 4), stages=stages, allow=frozenset({"replicas"}))
    found = await Tuner(scripted, given, sample, options, engines=engines).run()
    return found, scripted.asked


def stage(asked: list[Point], name: str) -> list[Point]:
    return [point for point in asked if point.stage == name]


def grouped(point: Point) -> float:
    """Four sequences are best in the sweep. As a worker runs them they do twice as much."""
    if point.drive.items:
        return {2: 50.0, 4: 100.0}.get(point.drive.items, 10.0)
    return 200.0 if point.options.get("max_num_seqs") == 4 else 90.0


async def test_a_stage_is_compared_with_the_choice_as_a_worker_runs_it() -> None:
    def rate(point: Point) -> float:
        return 150.0 if "max_num_batched_tokens" in point.options else grouped(point)

    found, asked = await tuned(rate)
    assert [(p.drive, dict(p.options)) for p in stage(asked, "choice")] == [
        (Drive(), {"max_num_seqs": 4})
    ]
    assert not found.decisions[0].options  # 150 are more than the sweep's 100, not than 200
    assert "changes tokens/s by -25.0%" in found.decisions[0].why


async def test_a_choice_that_no_stage_changed_is_not_measured_twice() -> None:
    found, asked = await tuned(grouped)
    assert len(stage(asked, "choice")) == 1
    assert not stage(asked, "verify")
    assert found.comparison["chosen"]["output_tokens_per_s"] == 200.0
    assert found.options == {"max_num_seqs": 4}


async def test_what_a_stage_took_is_measured_a_second_time() -> None:
    def rate(point: Point) -> float:
        if "max_num_batched_tokens" not in point.options:
            return grouped(point)
        lucky = point.round == 0
        return 300.0 if lucky else 80.0

    found, asked = await tuned(rate)
    verified = stage(asked, "verify")
    assert [p.options["max_num_batched_tokens"] for p in verified] == [1024]
    assert [p.stage for p in asked[-2:]] == ["release", "verify"]  # by another start
    assert found.comparison["chosen"]["output_tokens_per_s"] == 200.0  # without it
    assert found.options == {"max_num_seqs": 4}
    assert not found.confirmed
    assert not found.keeps_given


async def test_what_a_stage_took_stays_if_it_gains_again() -> None:
    def rate(point: Point) -> float:
        return 300.0 if "max_num_batched_tokens" in point.options else grouped(point)

    found, _ = await tuned(rate)
    assert found.options == {"max_num_seqs": 4, "max_num_batched_tokens": 1024}
    assert found.confirmed


async def test_a_choice_that_fails_in_its_own_engine_keeps_the_given_settings() -> None:
    def rate(point: Point) -> float:
        return 0.0 if point.stage in {"choice", "verify"} else grouped(point)

    found, _ = await tuned(rate)
    assert found.keeps_given
    assert found.options == {}
    assert any("no memory" in note and "given settings" in note for note in found.notes)


async def test_where_throughput_still_grows_the_option_that_goes_on_is_named() -> None:
    found, _ = await tuned(grouped, frozenset())
    assert any(note.endswith("give --sequences 8.") for note in found.notes)
    found, _ = await tuned(grouped, frozenset(), settings={"limits.max_engine_items": 4})
    assert not any("still growing" in note for note in found.notes)


async def test_no_more_sequences_are_tried_than_the_limits_let_in() -> None:
    settings = {"limits.max_engine_items": 3}
    found, asked = await tuned(grouped, frozenset(), settings=settings)
    assert [p.drive.items for p in stage(asked, "sequences")] == [2]
    assert any(note.startswith("limits.max_engine_items lets 3 items") for note in found.notes)


async def test_no_baseline_is_measured_for_stages_that_are_left_out() -> None:
    found, asked = await tuned(grouped, frozenset({"memory", "replicas"}))
    assert [decision.why.partition(":")[0] for decision in found.decisions] == ["left out"] * 2
    assert not stage(asked, "choice")
    assert found.complete


async def test_stages_without_a_baseline_are_left_out_with_the_reason() -> None:
    def refused(point: Point) -> float:
        return 0.0 if point.stage == "choice" else grouped(point)

    def no_time(point: Point) -> float:
        if point.stage == "choice":
            raise OutOfBudget("starting the engine may take 60 s, 10 are left")
        return grouped(point)

    wanted = frozenset({"batched_tokens"})
    found, _ = await tuned(refused, wanted)
    assert "no memory" in found.decisions[0].why
    assert found.complete
    found, _ = await tuned(no_time, wanted)
    assert "60 s, 10 are left" in found.decisions[0].why
    assert not found.complete


async def test_the_settings_as_given_have_as_many_engines_as_a_worker_would_start() -> None:
    found, asked = await tuned(grouped, frozenset({"verify"}), engines=3)
    assert [(p.stage, p.engines) for p in asked if not p.drive.items] == [
        ("default", 3),
        ("verify", 3),
    ]
    assert found.replicas == 3


async def test_a_stage_starts_from_one_engine_where_a_worker_would_start_several() -> None:
    found, asked = await tuned(grouped, frozenset({"batched_tokens", "verify"}), engines=3)
    assert [p.engines for p in stage(asked, "choice")] == [1]
    assert [p.engines for p in stage(asked, "verify")] == [3]
    assert found.comparison["default"]["replicas"] == 3


# --- what the file keeps --------------------------------------------------------------------------


async def test_a_choice_that_was_not_measured_as_a_worker_runs_it_keeps_the_given_settings() -> (
    None
):
    def no_time(point: Point) -> float:
        if point.stage in {"choice", "verify"}:
            raise OutOfBudget("10 s are left")
        return grouped(point)

    found, _ = await tuned(no_time, frozenset({"verify"}))
    assert found.keeps_given
    assert found.options == {}
    assert any(note.startswith("The chosen settings were not measured") for note in found.notes)


async def test_given_settings_that_were_not_measured_are_not_replaced() -> None:
    def no_default(point: Point) -> float:
        if point.stage == "default":
            raise OutOfBudget("10 s are left")
        return grouped(point)

    found, _ = await tuned(no_default, frozenset({"verify"}))
    assert found.keeps_given
    assert any(note.startswith("The given settings were not measured") for note in found.notes)


async def test_a_swept_choice_that_is_slower_than_the_given_settings_is_not_written() -> None:
    def rate(point: Point) -> float:
        return {2: 41.0, 4: 79.0}.get(point.drive.items or 0, 100.0)

    found, _ = await tuned(rate, frozenset())
    assert found.keeps_given
    faster, _ = await tuned(grouped, frozenset())
    assert not faster.keeps_given
