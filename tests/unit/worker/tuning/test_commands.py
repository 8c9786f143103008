"""Is a wrong command line told before anything starts, with status 2?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dragoman_worker.__main__ import app

JOB = {"job_id": "a", "text": "Hello.", "target_lang": "de"}
ECHO = ("--set", "engine.kind=echo")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    place = tmp_path / "jobs.jsonl"
    place.write_text(json.dumps(JOB) + "\n")
    return place


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default folders are made where one stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def called(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("tune", "--stages", "memory,luck"), "--stages: there is no 'luck'; give some of"),
        (("tune", "--allow", "int4"), "--allow: there is no 'int4'; give some of replicas, fp8"),
        (("tune", "--sequences", "8,none"), "--sequences 8,none: give numbers above 0"),
        (("tune", "--sequences", "0"), "--sequences 0: give numbers above 0"),
        (("bench", "--strategies", "magic"), "--strategies: there is no 'magic'"),
        (("tune", "--jobs", "absent.jsonl"), "--jobs absent.jsonl: there is no such file"),
        (("bench", "--jobs", "absent.jsonl"), "--jobs absent.jsonl: there is no such file"),
        (("tune", "--set", "engine.replicas=none"), "engine.replicas: give a number of engines"),
        (("tune", "--set", "engine.colour=red"), "engine.colour: there is no such setting"),
        (("tune", "--config", "absent.toml"), "--config absent.toml: there is no such file"),
    ],
)
def test_wrong_words_end_it_with_2_and_are_named(arguments: tuple[str, ...], told: str) -> None:
    result = called(*arguments, *ECHO)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "--sample", "0"),
        ("tune", "--seconds-per-point", "0"),
        ("tune", "--max-sequences", "0"),
        ("bench", "--rounds", "0"),
    ],
)
def test_numbers_out_of_bounds_are_refused(arguments: tuple[str, ...]) -> None:
    assert called(*arguments, *ECHO).exit_code == 2


def test_a_folder_that_cannot_be_written_is_named(jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    result = called("tune", *ECHO, "--jobs", str(jobs), "--out", str(tmp_path / "taken"))
    assert result.exit_code == 2
    assert "--out" in result.stderr


def test_an_unknown_profile_is_named(jobs: Path) -> None:
    result = called("tune", *ECHO, "--set", "engine.profile=none", "--jobs", str(jobs))
    assert result.exit_code == 2
    assert "engine.profile" in result.stderr


def test_a_broker_that_is_not_there_is_a_failure_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_worker.tuning.session.CONNECT_S", 0.5)
    result = called("tune", *ECHO, "--set", "kafka.bootstrap_servers=127.0.0.1:9")
    assert result.exit_code == 1
    assert "127.0.0.1:9" in result.stderr
    assert list(Path.cwd().iterdir()) == []
