"""The two compared trees, each with an environment of its own, made from its own locks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

TREE: Final = Path(__file__).resolve().parents[2]
"""The present tree, with whatever is not committed."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How a commit is installed and called where that differs between commits."""

    locks: tuple[str, ...]
    """Of a worker with the echo engine, and of the parsers of documents."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the worker, by dotted name, beyond those of measures.py."""
    translate: tuple[str, ...] = ()
    """Options of `dragoman translate`, beyond those of measures.py."""


WAYS: Final = (("1217f45", Ways(locks=("requirements/echo.lock", "requirements/documents.lock"))),)
"""From which commit on something differs, oldest first; the first row serves for what is older."""


@dataclass(frozen=True, slots=True)
class Side:
    """A tree whose commands can be run."""

    name: str
    commit: str
    changed: bool
    """Whether the tree has changes that are not committed."""
    bin: Path
    ways: Ways


@contextmanager
def both(commit: str) -> Iterator[tuple[Side, Side]]:
    """Make the environments of the present tree and of a commit; yield both sides.

    The commit's tree is a git worktree in build/, which is removed at the end. Raises SystemExit
    with a sentence where the commit or a package is missing.
    """
    full = _resolved(commit)
    (TREE / "build").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=TREE / "build", prefix="speed-beside-") as name:
        folder = Path(name)
        _git("worktree", "prune")  # of a run that was killed
        _git("worktree", "add", "--quiet", "--detach", str(folder / "tree"), full)
        try:
            this = _installed("this", _git("rev-parse", "HEAD"), TREE, folder / "this")
            yield this, _installed("that", full, folder / "tree", folder / "that")
        finally:
            _git("worktree", "remove", "--force", str(folder / "tree"))


def _resolved(commit: str) -> str:
    try:
        return _git("rev-parse", "--verify", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        raise SystemExit(f"{commit!r} is not a commit of this repository; see `git log`") from None


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=TREE, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _ways(commit: str) -> Ways:
    """Return the last row of WAYS whose commit is, or comes before, this one."""
    found = WAYS[0][1]
    for since, ways in WAYS:
        asked = ["git", "merge-base", "--is-ancestor", since, commit]
        if not subprocess.run(asked, cwd=TREE, check=False, stderr=subprocess.DEVNULL).returncode:
            found = ways
    return found


# --- environments ---------------------------------------------------------------------------------


def _installed(name: str, commit: str, tree: Path, folder: Path) -> Side:
    """Return the side of a tree, installed in editable mode into a new environment."""
    ways, python = _ways(commit), str(folder / "bin" / "python")
    missing = [lock for lock in ways.locks if not (tree / lock).is_file()]
    if missing:
        raise SystemExit(f"{commit} has no {', '.join(missing)}: give it a row of WAYS in sides.py")
    _uv(tree, "venv", "--quiet", "--python", sys.executable, str(folder))
    _uv(tree, "pip", "sync", "--quiet", "--python", python, *ways.locks)
    _uv(tree, "pip", "install", "--quiet", "--python", python, "--no-deps", "--editable", ".")
    changed = tree == TREE and bool(_git("status", "--porcelain"))
    return Side(name, commit, changed, folder / "bin", ways)


def _uv(tree: Path, *arguments: str) -> None:
    """Run uv with its cache, and with the package index only for what the cache lacks."""
    command = [str(Path(sys.executable).with_name("uv")), *arguments]
    for offline in (["--offline"], []):
        done = subprocess.run(
            command + offline, cwd=tree, check=False, capture_output=True, text=True
        )
        if not done.returncode:
            return
    raise SystemExit(
        f"can't install the packages of {tree}: neither uv's cache nor the index has them all.\n"
        f"{' '.join(command)}\n{done.stderr}"
    )
