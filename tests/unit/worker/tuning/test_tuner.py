"""Whole runs of `tune` and `bench` on the echo engine: knee, rows, continuation and refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman_connections.settings import load_settings
from dragoman_worker.cli.bench_session import benched
from dragoman_worker.cli.tune_session import tune_options, tuned
from dragoman_worker.engines.gpu import Gpu
from dragoman_worker.engines.machine import Machine
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.bench import BenchResults, table
from dragoman_worker.tuning.measure.engine_process import EngineRefused
from dragoman_worker.tuning.measure.harness import Harness, OutOfBudget, Point, PointSeconds
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.sample import from_file
from dragoman_worker.tuning.measure.session import CannotMeasure, MeasureRequest
from dragoman_worker.tuning.tuner import TuneOptions
from support.processes.child_process import ChildProcess, argv_of

LATENCY_S = 0.02
PACE = PointSeconds(seconds=0.3, warm_s=0.05)
POINT = Point("here", Drive(items=2))
DEADLY = ("One.", "#!exit\nTwo.")


def echo(**more: Any) -> WorkerSettings:
    options = {
        "engine.kind": "echo",
        "engine.echo.latency_s": LATENCY_S,
        "engine.options.max_num_seqs": 4,
        "engine.echo.faults": True,
    }
    return load_settings(
        WorkerSettings, None, {**options, **{n.replace("__", "."): v for n, v in more.items()}}
    )


def jobs(folder: Path, texts: Iterable[str] = ("One.", "Two, and more of it.", "Three!")) -> Path:
    place = folder / "jobs.jsonl"
    made = ({"job_id": f"j{n}", "text": t, "target_lang": "de"} for n, t in enumerate(texts))
    place.write_text("".join(json.dumps(one) + "\n" for one in made))
    return place


def request(folder: Path, settings: WorkerSettings | None = None, **more: Any) -> MeasureRequest:
    given: dict[str, Any] = {"pace": PACE, "as_json": True, "sample": 100, "out": folder / "out"}
    return MeasureRequest(settings=settings or echo(), **{"jobs": jobs(folder), **given, **more})


def harness(
    folder: Path, settings: WorkerSettings, pace: PointSeconds = PACE, **texts: Any
) -> Harness:
    sample = from_file(jobs(folder, **texts), 100)
    return Harness(settings, sample, folder, pace, progress=lambda _: None)


def chosen(**given: Any) -> TuneOptions:
    return tune_options(
        **{"sequences": None, "max_sequences": None, "stages": None, "allow": None, **given}
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "rows.jsonl").read_text().splitlines()]


def nothing_left() -> bool:
    children = psutil.Process().children(recursive=True)
    module = "dragoman_worker.tuning.measure.engine_child"
    return not any(module in argv_of(child) for child in children)


async def test_tune_finds_where_the_engine_is_full_and_a_second_run_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await tuned(request(tmp_path), chosen()) == 0
    data = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert [row["sequences"] for row in data["sweep"]] == [1, 2, 4]
    assert data["chosen"]["sequences"] == 4
    assert data["sample"]["answer_tokens"]["max"] == 7  # "[de] Two, and more of it.", by four
    # Each place of the engine does a job in its latency, and no more.
    for row in data["sweep"]:
        assert 0 < row["jobs_per_s"] <= 1.05 * row["sequences"] / LATENCY_S
        assert row["latency_ms"]["p50"] >= 0.95 * LATENCY_S * 1000
    assert set(data["comparison"]) == {"default", "chosen"}  # 16 sequences are more than it runs
    settings = load_settings(WorkerSettings, tmp_path / "out" / "settings.toml")
    assert settings.engine.options == {"max_num_seqs": 4}
    assert settings.engine.echo.latency_s == LATENCY_S
    assert (tmp_path / "out" / "tune.svg").read_text().count("chosen: 4") == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["chosen"] == data["chosen"]
    assert not (tmp_path / "out" / "sample.jsonl").exists()
    assert nothing_left()

    before = rows(tmp_path)
    other = echo(worker_id="another-process", kafka__bootstrap_servers="127.0.0.1:9")
    nothing = request(tmp_path, other, pace=PointSeconds(PACE.seconds, PACE.warm_s, budget_s=0))
    assert await tuned(nothing, chosen()) == 0
    assert rows(tmp_path) == before
    again = json.loads((tmp_path / "out" / "tune.json").read_text())
    *notes, reused = again.pop("notes")
    assert (notes, again) == (data.pop("notes"), data)
    assert reused.startswith("4 points were measured by an earlier run")


def test_ctrl_c_keeps_the_rows_and_prints_the_command_to_continue(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "dragoman_worker", "tune", "--out", str(out)]
    command += ["--jobs", str(jobs(tmp_path)), "--seconds-per-point", "0.2", "--warm-s", "0"]
    command += ["--set", "engine.kind=echo", "--set", "engine.echo.latency_s=0.02"]
    with ChildProcess(command, log=tmp_path / "tune", split_streams=True) as tune:
        tune.wait_for(lambda: _measured(out) >= 2, timeout_s=60, what="two rows")
        tune.interrupt()
        assert tune.wait(timeout_s=60) == 130
    assert "to continue, run:\n  dragoman-worker tune --out" in tune.errors
    assert _measured(out) >= 2
    assert not (out / "sample.jsonl").exists()


def _measured(out: Path) -> int:
    place = out / "rows.jsonl"
    lines = place.read_text().splitlines() if place.exists() else []
    return sum('"jobs_per_s"' in line for line in lines)


async def test_a_budget_too_small_for_any_point_is_an_error(tmp_path: Path) -> None:
    nothing = request(tmp_path, pace=PointSeconds(PACE.seconds, PACE.warm_s, budget_s=0))
    # Warming and counting may each be prolonged: 0.05 s and six times 0.3 s.
    with pytest.raises(CannotMeasure, match=r"may take 2 s, 0 are left of --budget-s 0; give more"):
        await tuned(nothing, chosen())


async def test_a_stage_left_out_for_lack_of_time_gives_exit_status_3(tmp_path: Path) -> None:
    options = chosen(sequences="1,4", stages="")
    assert await tuned(request(tmp_path), options) == 0
    options = chosen(sequences="1,4", stages="replicas", allow="replicas")
    nothing = request(tmp_path, pace=PointSeconds(PACE.seconds, PACE.warm_s, budget_s=0))
    assert await tuned(nothing, options) == 3
    data = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert "are left of --budget-s 0" in data["stages"][0]["why"]


async def test_jobs_that_cannot_run_are_named_as_the_reason(tmp_path: Path) -> None:
    place = tmp_path / "unfit.jsonl"
    job = {"job_id": "j", "text": "One.", "target_lang": "de", "profile": "no-such"}
    place.write_text(json.dumps(job) + "\n")
    with pytest.raises(CannotMeasure, match=r"^1 jobs cannot be run: .*no-such"):
        await tuned(request(tmp_path, jobs=place), chosen())
    assert [row["stage"] for row in rows(tmp_path)] == ["survey"]


async def test_jobs_that_all_fail_are_an_error_with_the_first_reason(tmp_path: Path) -> None:
    failing = jobs(tmp_path, ["#!fatal\nOne.", "#!fatal\nTwo."]).rename(tmp_path / "failing")
    with pytest.raises(CannotMeasure, match="no job succeeded: "):
        await tuned(request(tmp_path, jobs=failing), chosen())
    with pytest.raises(CannotMeasure, match="no job succeeded: "):
        await benched(request(tmp_path, jobs=failing), frozenset({"given"}), 1)


async def test_bench_reports_failed_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = jobs(tmp_path, ["#!fatal\nOne.", "Two.", "Three."]).rename(tmp_path / "some")
    assert await benched(request(tmp_path, jobs=some), frozenset({"given"}), 1) == 0
    capsys.readouterr()
    (note,) = json.loads((tmp_path / "out" / "bench.json").read_text())["notes"]
    assert "jobs failed, the first with: " in note


async def test_more_sequences_than_the_engine_runs_are_named(tmp_path: Path) -> None:
    options = chosen(sequences="2,5,99999", stages="")
    assert await tuned(request(tmp_path), options) == 0
    data = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert [row["sequences"] for row in data["sweep"]] == [2]
    left_out = [note for note in data["notes"] if note.startswith("--sequences")]
    assert ["runs 4 at most" in note for note in left_out] == [True, True]
    options = chosen(sequences="99999", stages="")
    with pytest.raises(CannotMeasure, match="--sequences 99999 was left out"):
        await tuned(request(tmp_path), options)


async def test_replicas_that_no_stage_decided_stay_and_are_what_is_compared(
    tmp_path: Path,
) -> None:
    settings = echo(engine__replicas=2)
    assert await tuned(request(tmp_path, settings), chosen(sequences="2", stages="")) == 0
    assert load_settings(WorkerSettings, tmp_path / "out" / "settings.toml").engine.replicas == 2
    data = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert data["comparison"]["default"]["replicas"] == 2
    unmeasured = "The chosen settings were not measured as a worker runs them. The file keeps"
    assert [note for note in data["notes"] if note.startswith(unmeasured)]

    verified = chosen(sequences="2", stages="verify")
    assert await tuned(request(tmp_path, settings), verified) == 0
    data = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert data["comparison"]["chosen"]["replicas"] == 2
    assert not [note for note in data["notes"] if note.startswith(unmeasured)]


async def test_an_engine_that_does_not_start_names_its_setting(tmp_path: Path) -> None:
    wrong = echo(**{"engine.options.max_model_len": "long"})
    with pytest.raises(CannotMeasure, match=r"^engine\.options\.max_model_len: give a whole"):
        await tuned(request(tmp_path, wrong), chosen())
    assert [row["setting"] for row in rows(tmp_path)] == ["engine.options.max_model_len"]


async def test_a_refused_point_is_a_row_with_its_setting_and_the_next_is_measured(
    tmp_path: Path,
) -> None:
    bench = harness(tmp_path, echo())
    try:
        refused = await bench.measure(Point("here", Drive(items=2), {"max_num_batched_tokens": -1}))
        assert refused["setting"] == "engine.options.max_num_batched_tokens"
        assert "give a whole number above 0" in refused["refused"]
        assert (await bench.measure(POINT))["jobs"] > 0
    finally:
        await bench.abandon()
    kept = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [("refused" in row) for row in kept] == [True, False]
    assert harness(tmp_path, echo()).rows.get(refused["key"]) == refused  # it stays refused


async def test_an_engine_that_dies_under_load_is_a_row_and_the_run_continues(
    tmp_path: Path,
) -> None:
    bench = harness(tmp_path, echo(), texts=DEADLY)
    try:
        row = await bench.measure(POINT)
        assert "status 70" in row["refused"]
        assert await bench.measure(POINT) == row  # not tried again within this run
        assert (
            harness(tmp_path, echo(), texts=DEADLY).rows.get(row["key"]) is None
        )  # but by the next
        with pytest.raises(EngineRefused, match="max_model_len"):
            await bench.survey(Point("here", Drive(), {"max_model_len": 0}))
    finally:
        await bench.abandon()
    assert nothing_left()


def test_another_machine_or_engine_makes_another_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = harness(tmp_path, echo())._key(POINT)
    assert harness(tmp_path, echo())._key(POINT) == here
    monkeypatch.setattr(
        "dragoman_worker.tuning.measure.harness.environment", lambda _: {"version": "other"}
    )
    assert harness(tmp_path, echo())._key(POINT) != here


async def test_rates_of_several_engines_add_up_and_fitting_engines_are_kept(tmp_path: Path) -> None:
    bench = harness(tmp_path, echo())
    try:
        one = await bench.measure(Point("here", Drive(items=4), engines=1))
        two = await bench.measure(Point("here", Drive(items=4), engines=2))
        started = bench.start_s
        await bench.measure(Point("here", Drive(items=2), engines=2))
        assert bench.start_s == started
        assert two["running_max"] > one["running_max"]
        assert two["replicas"] == 2
    finally:
        await bench.abandon()


async def test_engines_that_do_not_fit_the_gpu_together_are_refused_before_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine((Gpu("0", "GPU-0", 2**37),), cores=16)
    monkeypatch.setattr("dragoman_worker.engines.sizing.this_machine", lambda: machine)
    settings = echo(engine__kind="vllm", engine__model="some/model")
    options = {"gpu_memory_utilization": 0.6}
    row = await harness(tmp_path, settings).measure(Point("here", Drive(), options, engines=2))
    assert (row["setting"], row["passing"]) == ("engine.options.gpu_memory_utilization", False)
    assert "0.6 is for each of engine.replicas = 2" in row["refused"]
    assert nothing_left()


async def test_batches_and_all_at_once_are_timed_until_their_last_job(
    tmp_path: Path,
) -> None:
    texts = ("#!sleep 0.2\nSlow.", "One.", "Two.", "Three.")
    bench = harness(tmp_path, echo(), texts=texts)
    try:
        static = await bench.measure(Point("static", Drive("static", batch=4)))
        assert static["latency_ms"]["p50"] >= 200
        flowing = await bench.measure(Point("flowing", Drive(items=4)))
        assert flowing["latency_ms"]["p50"] < 200
        at_once = await bench.measure(Point("all", Drive("all", jobs=4)))
        assert at_once["jobs"] == 4
        assert at_once["seconds"] >= 0.2
    finally:
        await bench.abandon()


async def test_no_point_starts_that_might_exceed_the_budget(tmp_path: Path) -> None:
    bench = harness(tmp_path, echo(), PointSeconds(PACE.seconds, PACE.warm_s, budget_s=60))
    try:
        await bench.measure(POINT)
        with pytest.raises(OutOfBudget, match="are left of --budget-s 60"):
            await bench.measure(Point("here", Drive(items=1)), reserve_s=60)
        assert (await bench.measure(POINT, reserve_s=60))["jobs"] > 0  # known: costs nothing
    finally:
        await bench.abandon()


async def test_bench_reports_every_strategy_as_a_ratio_to_all_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = frozenset({"one", "static", "all"})
    assert await benched(request(tmp_path), wanted, 2) == 0
    data = json.loads((tmp_path / "out" / "bench.json").read_text())["table"]
    by_name = {line["strategy"]: line for line in data}
    assert set(by_name) == {"one", "static", "all", "given"}  # what sizes all at once is shown
    assert by_name["all"]["ratio"] == 1
    assert by_name["one"]["ratio"] < by_name["given"]["ratio"]
    assert {line["runs"] for line in data} == {2}
    assert (tmp_path / "out" / "bench.svg").exists()
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["strategy"] for line in printed if "ratio" in line] == [
        line["strategy"] for line in data
    ]


def test_ratios_are_within_a_round_and_have_a_range() -> None:
    def row(number: int, rate: float) -> dict[str, Any]:
        rest: dict[str, Any] = {
            "latency_ms": None,
            "gpu_busy": None,
            "kv_usage_max": None,
            "options": {},
        }
        return {
            "round": number,
            "jobs_per_s": rate,
            "output_tokens_per_s": rate,
            "replicas": 1,
            **rest,
        }

    results = BenchResults(
        {"all": [row(0, 100.0), row(1, 200.0)], "one": [row(0, 10.0), row(1, 30.0)]}
    )
    one = table(results)[0]
    assert one["strategy"] == "one"
    assert one["ratio"] == pytest.approx(20 / 150, abs=1e-4)
    assert one["ratio_spread"] == [0.1, 0.15]
    assert one["spread"] == [10.0, 30.0]
