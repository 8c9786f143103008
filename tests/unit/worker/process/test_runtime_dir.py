"""Is a run's folder its own while it lives, and gone when it does not?"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman_worker.process.runtime_dir import NoFolder, runtime_directory

_HOLD = "from dragoman_worker.process.runtime_dir import runtime_directory as f\n"
_HOLD += "with f() as folder:\n (folder / '0.sock').touch(); print(folder, flush=True); input()"


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """For temporary files; pytest's own folders are too long for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def age(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_a_run_that_ends_leaves_nothing(place: Path) -> None:
    with runtime_directory() as folder:
        (folder / "0.sock").touch()
        assert folder.parent == place
    assert list(place.iterdir()) == []


def test_what_a_killed_run_left_goes_with_the_next_start_and_what_a_living_one_has_stays(
    place: Path,
) -> None:
    argv = [sys.executable, "-c", _HOLD]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            theirs = Path(other.stdout.readline().strip())
            age(theirs)
            with runtime_directory() as ours:
                assert {*place.iterdir()} == {ours, theirs}
                assert (theirs / "0.sock").exists()
        finally:
            other.kill()
    assert theirs.exists(), "killed: it could not clean up"
    with runtime_directory() as ours:
        assert [*place.iterdir()] == [ours]


def test_a_folder_that_is_about_to_be_locked_and_one_of_another_name_stay(place: Path) -> None:
    young, foreign = place / "dragoman-run-young", place / "dragoman-engine-x"
    for folder in (young, foreign):
        folder.mkdir()
    age(foreign)
    with runtime_directory() as ours:
        assert {*place.iterdir()} == {ours, young, foreign}


def test_a_long_way_to_temporary_files_is_not_taken(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = place / ("x" * 90)
    far.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    with runtime_directory() as folder:
        assert len(str(folder / "10.sock")) <= 103


def test_without_a_temporary_directory_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(NoFolder, match=r"No usable.*TMPDIR"), runtime_directory():
        raise AssertionError


def test_an_error_of_what_runs_in_the_folder_is_its_own() -> None:
    with pytest.raises(PermissionError), runtime_directory():
        raise PermissionError
