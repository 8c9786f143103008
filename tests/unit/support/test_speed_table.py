"""Tests for the table of `make speed-beside`."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

_BESIDE = Path(__file__).parents[3] / "benchmarks" / "beside"
_TABLE = runpy.run_path(str(_BESIDE / "table.py"))


def _round(this: float, that: float) -> dict[str, Any]:
    return {"this": {"jobs_per_s": this}, "that": {"jobs_per_s": that}}


def test_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    [row] = _TABLE["rows"]([_round(100, 100), _round(30, 20), _round(50, 100)])
    assert row == {
        "measure": "jobs_per_s",
        "this": 50,
        "that": 100,
        "ratio": 1.0,
        "ratio_min": 0.5,
        "ratio_max": 1.5,
    }


def test_table_has_a_line_for_each_measure_that_was_taken() -> None:
    lines = _TABLE["markdown"](_TABLE["rows"]([_round(5_766.4, 2_883.2)])).splitlines()
    assert lines[2:] == ["| echo, jobs/s | 5,766 | 2,883 | 2.000 (2.000-2.000) |"]


def test_documents_of_every_format_have_about_the_wanted_size(tmp_path: Path) -> None:
    made = runpy.run_path(str(_BESIDE / "documents.py"))
    found = made["written"](tmp_path / "set", 0.4)
    assert found.megabytes == pytest.approx(0.6, abs=0.3)
    assert {each.name for each in found.folder.iterdir()} == set(made["FORMATS"])
