"""Invalid command lines of `tune` and `bench`: exit status 2 before anything starts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dragoman_worker.__main__ import app
from support.plugins.own_log import own_log

JOB = {"job_id": "a", "text": "Hello.", "target_lang": "de"}
ECHO = ("--set", "engine.kind=echo")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    place = tmp_path / "jobs.jsonl"
    place.write_text(json.dumps(JOB) + "\n")
    return place


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty working directory, where the default folders are created."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Restore the log: the commands set it to the stderr of their call."""
    with own_log():
        yield


def called(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tune", "--stages", "memory,luck"), "--stages: there is no 'luck'; give some of"),
        (("tune", "--allow", "int4"), "--allow: there is no 'int4'; give some of replicas, fp8"),
        (("tune", "--sequences", "8,none"), "--sequences 8,none: give numbers above 0"),
        (("tune", "--sequences", "0"), "--sequences 0: give numbers above 0"),
        (("tune", "--seconds-per-point", "inf"), "--seconds-per-point inf: give a number of"),
        (("bench", "--warm-s", "inf"), "--warm-s inf: give a number of seconds"),
        (("tune", "--set", "engine.options.x=[1, null]"), "options.x: tune cannot write a null"),
        (("tune", "--set", "engine.options.x=1e400"), "options.x: tune cannot write the number"),
        (("bench", "--strategies", "magic"), "--strategies: there is no 'magic'"),
        (("tune", "--jobs", "absent.jsonl"), "--jobs absent.jsonl: there is no such file"),
        (("bench", "--jobs", "absent.jsonl"), "--jobs absent.jsonl: there is no such file"),
        (("tune", "--set", "engine.replicas=none"), "engine.replicas: give a number of engines"),
        (("tune", "--set", "engine.colour=red"), "unknown setting engine.colour"),
        (("tune", "--config", "absent.toml"), "--config absent.toml: there is no such file"),
    ],
)
def test_invalid_values_exit_with_2_and_are_named(arguments: tuple[str, ...], message: str) -> None:
    result = called(*arguments, *ECHO)
    assert result.exit_code == 2
    assert message in result.stderr
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


@pytest.mark.parametrize(("out", "advice"), [("taken", "give a folder"), ("taken/sub", "another")])
def test_a_folder_that_cannot_be_written_is_named(
    out: str, advice: str, jobs: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    result = called("tune", *ECHO, "--jobs", str(jobs), "--out", out)
    assert result.exit_code == 2
    assert f"--out {out}: " in result.stderr
    assert advice in result.stderr


def a_folder(place: Path) -> None:
    place.mkdir()


def a_full_disk(place: Path) -> None:
    place.symlink_to("/dev/full")


@pytest.mark.parametrize("spoil", [a_folder, a_full_disk])
def test_a_file_that_cannot_be_written_is_a_failure_and_named(
    spoil: Callable[[Path], None], jobs: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    spoil(tmp_path / "out" / "sample.jsonl")
    result = called("tune", *ECHO, "--jobs", str(jobs), "--out", "out")
    assert result.exit_code == 1
    assert "dragoman-worker: out/sample.jsonl: " in result.stderr


@pytest.mark.parametrize(
    ("strategies", "reason"),
    [
        ("replicas", "replicas cannot be measured here: there is one engine (auto: 1, because"),
        ("one,default", "default cannot be measured here: the settings set none of max_num_seqs"),
        (",", "none is named"),
    ],
)
def test_a_strategy_that_does_not_fit_the_settings_is_refused_with_the_reason(
    strategies: str, reason: str, jobs: Path, tmp_path: Path
) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "bench.json").write_text("what an earlier run found")
    result = called("bench", *ECHO, "--jobs", str(jobs), "--strategies", strategies)
    assert result.exit_code == 2
    assert f"--strategies: {reason}" in result.stderr
    assert (tmp_path / "bench" / "bench.json").read_text() == "what an earlier run found"


def test_an_unknown_profile_is_named(jobs: Path) -> None:
    result = called("tune", *ECHO, "--set", "engine.profile=none", "--jobs", str(jobs))
    assert result.exit_code == 2
    assert "engine.profile" in result.stderr


@pytest.mark.parametrize("command", ["tune", "bench"])
def test_an_unreachable_broker_is_waited_for_as_the_settings_say(command: str) -> None:
    """The log goes to stderr: stdout is for the rows."""
    nowhere = ("--set", "kafka.bootstrap_servers=127.0.0.1:9", "--set", "connect_timeout_s=1.5")
    began = time.monotonic()
    result = called(command, "--json", *ECHO, *nowhere)
    assert 1 < time.monotonic() - began < 60
    assert result.exit_code == 1
    assert "127.0.0.1:9" in result.stderr.splitlines()[-1]
    assert result.stdout == ""
    assert list(Path.cwd().iterdir()) == []
