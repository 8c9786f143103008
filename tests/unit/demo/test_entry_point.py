"""Does `dragoman-demo` say where the trial is, wherever it is typed?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dragoman_producer


def _type_dragoman_demo(*arguments: str, only: list[Path]) -> subprocess.CompletedProcess[str]:
    """As the console script does, with no import path but the standard library's and `only`."""
    code = "from dragoman_producer.trial import main; main()"
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, only))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_installed_client_without_the_trial_says_where_it_is() -> None:
    client = Path(dragoman_producer.__file__).parents[1]
    done = _type_dragoman_demo(only=[client])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "run `make demo`" in done.stderr


def test_in_the_repository_it_is_the_trial() -> None:
    done = _type_dragoman_demo("--help", only=[Path(path) for path in sys.path if path])
    assert done.returncode == 0
    assert "serve" in done.stdout
