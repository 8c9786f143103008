"""Rows are found again by their key, and only under the same settings."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman_worker.tuning.measure.results import Rows, key_of


def test_an_added_row_is_on_disk_at_once(tmp_path: Path) -> None:
    rows = Rows(tmp_path)
    row = {"key": "a", "jobs_per_s": 1.5, "refused": "a line\u2028of its own"}
    rows.add(row)
    again = Rows(tmp_path)
    assert again.get("a") == row
    assert again.get("b") is None


def test_a_line_that_a_kill_cut_off_is_dropped_and_no_other(tmp_path: Path) -> None:
    Rows(tmp_path).add({"key": "a", "n": 1})
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"key": "b", "jobs_per')
    rows = Rows(tmp_path)
    assert rows.get("b") is None
    rows.add({"key": "c", "n": 3})
    again = Rows(tmp_path)
    assert [row["key"] for row in again] == ["a", "c"]
    assert json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[-1])["key"] == "c"


def test_a_passing_failure_is_known_to_its_run_only(tmp_path: Path) -> None:
    rows = Rows(tmp_path)
    rows.add({"key": "killed", "refused": "signal 9", "passing": True})
    rows.add({"key": "wrong", "refused": "no such option", "passing": False})
    assert rows.get("killed") is not None
    again = Rows(tmp_path)
    assert again.get("killed") is None
    assert again.get("wrong") is not None
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2


def test_a_key_depends_on_every_part_and_not_on_its_order() -> None:
    first = key_of({"engine": {"a": 1, "b": None}, "seconds": 5})
    assert key_of({"seconds": 5, "engine": {"b": None, "a": 1}}) == first
    assert key_of({"seconds": 6, "engine": {"a": 1, "b": None}}) != first
    assert key_of({"seconds": 5, "engine": {"a": 2, "b": None}}) != first
