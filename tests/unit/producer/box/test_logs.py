"""Logs of a box do not grow without bound, and their last lines stay readable."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from dragoman_producer.box.logs import bound_logs, last_lines


def test_a_long_log_is_emptied_and_what_it_had_is_kept_once(tmp_path: Path) -> None:
    log, short = tmp_path / "worker.log", tmp_path / "redis.log"
    short.write_text("as it was\n")
    with log.open("a") as program:
        for round_ in range(3):
            program.write(f"{round_}\n" * 600)
            program.flush()
            bound_logs(tmp_path, most=1_000)
            assert log.stat().st_size == 0
        program.write("later\n")
    older = tmp_path / "worker.log.1"
    assert (log.read_text(), older.read_text()) == ("later\n", "2\n" * 600)
    assert stat.S_IMODE(older.stat().st_mode) == 0o600
    assert short.read_text() == "as it was\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_log_that_cannot_be_kept_is_emptied_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    (tmp_path / "worker.log").write_text("x" * 2_000)
    bound_logs(tmp_path, most=1_000)
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("worker.log", 0)]


def test_the_last_lines_are_those_since_a_start_also_after_a_log_was_emptied(
    tmp_path: Path,
) -> None:
    log = tmp_path / "worker.log"
    log.write_text("before\n")
    since = log.stat().st_size
    with log.open("a") as program:
        program.write("one\ntwo\n")
    assert last_lines(log, 5, since) == "one\ntwo"
    log.write_text("three\n")
    assert last_lines(log, 5, since) == "three"
