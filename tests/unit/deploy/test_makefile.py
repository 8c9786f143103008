"""Tests of what `make` says where a program is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def test_make_compose_up_without_the_compose_plugin_says_what_it_needs(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'unknown flag: --file' >&2\nexit 125\n")
    docker.chmod(0o755)
    done = subprocess.run(
        ["make", "compose-up"],
        cwd=_ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "make compose-up needs Docker with its plugin compose"
