"""Stages after the sweep: when they run, what they take, and why they are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman_worker.settings import EngineSettings
from dragoman_worker.tuning.measure.harness import OutOfBudget, Point
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.stages import (
    AFTER_SWEEP,
    Baseline,
    Decision,
    better,
    obstacle,
    run_stage,
)

LIMITS = {"max_num_seqs": 1024, "max_num_batched_tokens": 8192, "devices": 1}
Rate = Callable[[Point], dict[str, Any]]


def row(rate: float = 1000.0, p99: float = 500.0, **more: Any) -> dict[str, Any]:
    fields = {"output_tokens_per_s": rate, "latency_ms": {"p99": p99}, "limits": LIMITS}
    rest = {
        "kv_usage_max": 0.4,
        "preemptions": 0,
        "jobs": 100,
        "failed": 0,
        "replicas": 1,
        "options": {},
        "seconds": 5,
    }
    return {**fields, **rest, "drive": {"items": 512}, **more}


class ScriptedHarness:
    """Harness that answers from a function and records the points."""

    def __init__(self, answer: Rate) -> None:
        self.asked: list[Point] = []
        self._answer = answer

    async def measure(self, point: Point, *, reserve_s: float = 0.0) -> dict[str, Any]:
        self.asked.append(point)
        named = {"options": dict(point.options), "replicas": point.engines}
        return {**row(), **named, "drive": {"items": point.drive.items}, **self._answer(point)}


def given(base: dict[str, Any] | None = None, **more: Any) -> Baseline:
    engine = EngineSettings.model_validate({"model": "some/model", **more.pop("engine", {})})
    taken = {"max_num_seqs": 512, **more.pop("options", {})}
    rest: dict[str, Any] = {"allow": frozenset({"replicas"}), "named": frozenset(), **more}
    return Baseline(engine, 512, base or row(), options=taken, **rest)


async def decided(name: str, harness: ScriptedHarness, start: Baseline) -> Decision:
    scripted: Any = harness
    if (why := obstacle(name, start)) is not None:
        return Decision(name, f"left out: {why}")
    return await run_stage(name, scripted, start)


def test_a_setting_is_taken_only_for_a_gain_that_costs_no_latency() -> None:
    base = row(1000, 500)
    assert better([row(1029, 500)], base) is None
    assert better([row(1031, 500)], base) == row(1031, 500)
    assert better([row(2000, 551)], base) is None
    assert better([row(1040, 500), row(1050, 500)], base) == row(1050, 500)
    assert better([row(1500, 560), row(1100, 500), row(1050, 400)], base) == row(1100, 500)
    assert better([{"refused": "no memory"}], base) is None
    assert better([row(2000, 500, jobs=0)], base) is None
    assert better([], base) is None


async def test_batched_tokens_are_tried_on_both_sides_and_the_better_one_is_taken() -> None:
    harness = ScriptedHarness(
        lambda p: {
            "output_tokens_per_s": 1100.0 if p.options["max_num_batched_tokens"] > 8192 else 900.0
        }
    )
    decision = await decided("batched_tokens", harness, given())
    assert [p.options["max_num_batched_tokens"] for p in harness.asked] == [4096, 16384]
    assert decision.options == {"max_num_batched_tokens": 16384}
    assert "16384 changes tokens/s by +10.0%" in decision.why


async def test_points_of_a_stage_run_as_a_worker_does_with_the_chosen_sequences() -> None:
    harness = ScriptedHarness(lambda _: {})
    for name in AFTER_SWEEP:
        both = frozenset({"replicas", "fp8"})
        await decided(name, harness, given(row(preemptions=1), allow=both, named=both))
    assert {p.drive for p in harness.asked} == {Drive()}
    assert {p.options["max_num_seqs"] for p in harness.asked if p.engines == 1} == {512}


async def test_a_refused_value_is_reported_and_another_may_be_taken() -> None:
    refusal = "engine.options.gpu_memory_utilization: the device ran out of memory"

    def answer(point: Point) -> dict[str, Any]:
        large = point.options["max_num_batched_tokens"] > 8192
        return {"refused": refusal, "setting": "x"} if large else {"output_tokens_per_s": 1100.0}

    decision = await decided("batched_tokens", ScriptedHarness(answer), given())
    assert decision.options == {"max_num_batched_tokens": 4096}
    assert f"16384 was refused ({refusal})" in decision.why


async def test_more_memory_is_tried_only_where_the_kv_cache_was_full() -> None:
    harness = ScriptedHarness(lambda _: {"output_tokens_per_s": 1200.0})
    assert (await decided("memory", harness, given())).why.startswith("left out: at most 40%")
    assert not harness.asked
    full = given(row(kv_usage_max=0.99))
    assert (await decided("memory", harness, full)).options == {"gpu_memory_utilization": 0.95}
    preempting = given(row(preemptions=3))
    assert (await decided("memory", harness, preempting)).options == {
        "gpu_memory_utilization": 0.95
    }
    asked = len(harness.asked)
    for engine in ({"options": {"kv_cache_memory_bytes": 10**9}}, {"replicas": 4}):
        fixed = given(row(preemptions=3), engine=engine)
        assert (await decided("memory", harness, fixed)).why.startswith("left out")
    assert len(harness.asked) == asked


async def test_fp8_is_tried_only_if_it_is_allowed() -> None:
    harness = ScriptedHarness(lambda _: {"output_tokens_per_s": 1200.0})
    assert "--allow fp8" in (await decided("fp8", harness, given())).why
    assert not harness.asked
    allowed = given(allow=frozenset({"fp8"}))
    assert (await decided("fp8", harness, allowed)).options == {"quantization": "fp8"}


async def test_replicas_share_the_memory_and_the_sequences_and_the_best_number_is_taken() -> None:
    harness = ScriptedHarness(
        lambda p: {"output_tokens_per_s": {2: 1100.0, 3: 1500.0, 4: 1490.0}[p.engines]}
    )
    both = frozenset({"replicas"})
    decision = await decided("replicas", harness, given(allow=both, named=both))
    assert (decision.replicas, decision.options) == (3, {"max_num_seqs": 256})
    tried = [(p.engines, dict(p.options)) for p in harness.asked]  # the places divide the memory
    assert tried == [(n, {"max_num_seqs": each}) for n, each in ((2, 384), (3, 256), (4, 192))]


async def test_a_memory_share_taken_for_one_engine_is_not_given_to_several() -> None:
    harness = ScriptedHarness(lambda _: {"output_tokens_per_s": 900.0})
    both = frozenset({"replicas"})
    taken = {"gpu_memory_utilization": 0.95, "max_num_batched_tokens": 8192}
    await decided("replicas", harness, given(allow=both, named=both, options=taken))
    tried = [{k: v for k, v in p.options.items() if k != "max_num_seqs"} for p in harness.asked]
    assert tried == [{"max_num_batched_tokens": 8192}] * 3


async def test_one_engine_is_a_decision_only_if_more_were_measured() -> None:
    both = frozenset({"replicas"})
    slower = ScriptedHarness(lambda _: {"output_tokens_per_s": 900.0})
    decision = await decided("replicas", slower, given(allow=both, named=both))
    assert (decision.replicas, decision.options) == (1, {})
    assert len(slower.asked) == 3


async def test_several_engines_of_which_some_cost_latency_are_not_all_refused() -> None:
    measured = {2: (1900.0, 505.0), 3: (2900.0, 505.0), 4: (3900.0, 575.0)}

    def answer(point: Point) -> dict[str, Any]:
        rate, p99 = measured[point.engines]
        return {"output_tokens_per_s": rate, "latency_ms": {"p99": p99}}

    both = frozenset({"replicas"})
    decision = await decided("replicas", ScriptedHarness(answer), given(allow=both, named=both))
    assert decision.replicas == 3
    assert decision.taken is not None
    assert decision.taken["replicas"] == 3


async def test_a_stage_that_could_not_measure_all_takes_nothing() -> None:
    def answer(point: Point) -> dict[str, Any]:
        if point.engines == 4:
            raise OutOfBudget("starting the engine may take 60 s, 10 are left")
        return {"output_tokens_per_s": 2000.0}

    both = frozenset({"replicas"})
    decision = await decided("replicas", ScriptedHarness(answer), given(allow=both, named=both))
    assert (decision.replicas, decision.options, decision.complete) == (None, {}, False)


async def test_replicas_are_not_tried_for_model_sizes_that_do_not_gain() -> None:
    harness = ScriptedHarness(lambda _: {})
    decision = await decided("replicas", harness, given())
    assert not harness.asked
    assert decision.replicas is None
    assert "--allow replicas" in decision.why


@pytest.mark.parametrize("name", AFTER_SWEEP)
async def test_a_stage_without_time_is_left_out_with_the_reason(name: str) -> None:
    def no_time(point: Point) -> dict[str, Any]:
        raise OutOfBudget("starting the engine needs 60 s, 10 are left")

    both = frozenset({"replicas", "fp8"})
    start = given(row(preemptions=1), allow=both, named=both)
    decision = await decided(name, ScriptedHarness(no_time), start)
    assert decision.why.startswith("left out: starting the engine needs 60 s")
    assert not decision.options
    assert not decision.complete
