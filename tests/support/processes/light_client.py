"""The client's environment of README step 1: the wheel and requirements/client.lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
UV = Path(sys.executable).with_name("uv")


def run_light(*argv: str | Path, cwd: Path) -> str:
    """Return stdout of a command that must succeed, without the tests' environment."""
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_light_client(folder: Path) -> Path:
    """Make a clean environment in `folder` and return its bin folder.

    Offline: `make install` has put each of those packages into uv's cache.
    """
    run_light(UV, "build", "--offline", "--quiet", "--wheel", "-o", folder, _ROOT, cwd=folder)
    venv = folder / "venv"
    run_light(UV, "venv", "--offline", "--quiet", "-p", sys.executable, venv, cwd=folder)
    [wheel] = folder.glob("dragoman-*.whl")
    python = venv / "bin" / "python"
    lock = _ROOT / "requirements" / "client.lock"
    install: list[str | Path] = [UV, "pip", "install", "--offline", "--quiet", "--no-deps"]
    run_light(*install, "--python", python, "-r", lock, wheel, cwd=folder)
    return venv / "bin"
