"""A runtime directory belongs to one living run and is removed afterwards."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman_worker.process.runtime_dir import NoRuntimeDirectory, runtime_directory

_HOLD = "from dragoman_worker.process.runtime_dir import runtime_directory as f\n"
_HOLD += "with f() as folder:\n (folder / '0.sock').touch(); print(folder, flush=True); input()"


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Directory for temporary files; pytest's own paths are too long for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def age(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_a_run_that_exits_removes_its_directory(place: Path) -> None:
    with runtime_directory() as folder:
        (folder / "0.sock").touch()
        assert folder.parent == place
    assert list(place.iterdir()) == []


def test_the_next_start_removes_the_directory_of_a_killed_run_but_not_of_a_living_one(
    place: Path,
) -> None:
    argv = [sys.executable, "-c", _HOLD]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            other_dir = Path(other.stdout.readline().strip())
            age(other_dir)
            with runtime_directory() as own_dir:
                assert {*place.iterdir()} == {own_dir, other_dir}
                assert (other_dir / "0.sock").exists()
        finally:
            other.kill()
    assert other_dir.exists(), "killed: it could not clean up"
    with runtime_directory() as own_dir:
        assert [*place.iterdir()] == [own_dir]


def test_young_directories_and_those_with_another_name_are_kept(place: Path) -> None:
    young, foreign = place / "dragoman-run-young", place / "dragoman-engine-x"
    for folder in (young, foreign):
        folder.mkdir()
    age(foreign)
    with runtime_directory() as own_dir:
        assert {*place.iterdir()} == {own_dir, young, foreign}


def test_a_temporary_directory_with_a_long_path_is_not_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = place / ("x" * 90)
    far.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    with runtime_directory() as folder:
        assert len(str(folder / "10.sock")) <= 103


def test_without_a_temporary_directory_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(NoRuntimeDirectory, match=r"No usable.*TMPDIR"), runtime_directory():
        raise AssertionError


def test_an_error_inside_the_context_is_not_changed() -> None:
    with pytest.raises(PermissionError), runtime_directory():
        raise PermissionError
