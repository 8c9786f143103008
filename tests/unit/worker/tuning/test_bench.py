"""Strategies, notes and table of `bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.cli import bench_session
from dragoman_worker.cli.bench_session import benched
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.bench import Bench, BenchResults
from dragoman_worker.tuning.measure.harness import PointSeconds
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.session import CannotMeasure, MeasureRequest


def request(folder: Path, **options: Any) -> MeasureRequest:
    place = folder / "jobs.jsonl"
    place.write_text(json.dumps({"job_id": "a", "text": "One.", "target_lang": "de"}) + "\n")
    settings = load_settings(WorkerSettings, None, {"engine.kind": "echo", **options})
    return MeasureRequest(
        settings, place, 10, folder / "out", PointSeconds(0.1, 0.0), as_json=False
    )


@pytest.mark.parametrize(
    ("drive", "in_flight"),
    [
        (Drive("static", batch=16), 16),
        (Drive(clients=25, items=16), 16),
        (Drive(clients=1), 1),
        (Drive(), 0),
    ],
)
def test_an_engine_is_warmed_with_as_many_jobs_as_the_drive_has_in_flight(
    drive: Drive, in_flight: int
) -> None:
    assert drive.in_flight == in_flight


async def test_a_strategy_that_needs_more_sequences_than_the_engine_runs_is_refused(
    tmp_path: Path,
) -> None:
    few = request(tmp_path, **{"engine.options.max_num_seqs": 4})
    with pytest.raises(SettingsError, match=r"published cannot be .* 16 sequences, the engine 4"):
        await benched(few, frozenset({"published"}), 1)


async def test_a_run_without_rows_keeps_an_earlier_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> BenchResults:
        return BenchResults(notes=["one request at a time: the engine died"])

    monkeypatch.setattr(Bench, "run", nothing)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "bench.json").write_text("earlier")
    with pytest.raises(CannotMeasure, match=r"nothing was measured; one request .* died"):
        await benched(request(tmp_path), frozenset({"one"}), 1)
    assert (tmp_path / "out" / "bench.json").read_text() == "earlier"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
async def test_names_rates_and_p99_are_uncut_at_every_width(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def found(*_: object) -> BenchResults:
        return BenchResults({"static": [row(0, 1_111.0)], "all": [row(0, 22_222.0)]})

    monkeypatch.setattr(Bench, "run", found)
    monkeypatch.setattr(bench_session, "_plot", lambda *_: None)
    monkeypatch.setenv("COLUMNS", str(width))
    assert await benched(request(tmp_path), None, 1) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    lines = [line.split() for line in printed.splitlines()]
    rows = {tuple(line[:4]): line for line in lines if "98,765" in line}
    assert [name[:-1] for name in rows if name[0] == "static"] == [("static", "batches", "1111")]
    assert [name for name in rows if name[0] == "all"] == [("all", "at", "once", "22222")]


def row(number: int, rate: float) -> dict[str, Any]:
    return {
        "round": number,
        "jobs_per_s": rate,
        "output_tokens_per_s": 123_456.0,
        "latency_ms": {"p50": 1.0, "p99": 98_765.0},
        "gpu_busy": 99.0,
        "kv_usage_max": None,
        "replicas": 1,
        "options": {},
    }
