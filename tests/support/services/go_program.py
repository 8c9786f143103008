"""Programs in Go for tests, compiled once per source.

The module cache of Go is in a cache folder (`DRAGOMAN_CACHE`, default `~/.cache/dragoman`); go
fetches the modules of `go/go.mod` into it once and compares them with `go/go.sum`. Their versions
are the last ones that Go 1.19 compiles, which Debian 12 has.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_MODULES: Final = Path(__file__).with_name("go")
_TIMEOUT_S: Final = 900
"""The first build compiles Go's standard library too: two minutes on a busy machine."""


class GoUnavailable(RuntimeError):
    """This machine cannot compile Go; the message names what to install."""


def built(source: str) -> Path:
    """Return the program of a file `main.go`.

    Raises GoUnavailable, and ValueError for errors of the program.
    """
    go = shutil.which("go")
    if go is None:
        raise GoUnavailable(
            "the example in Go is compiled by go, 1.19 or later (Debian: golang-go)"
        )
    cache = Path(os.environ.get("DRAGOMAN_CACHE", Path.home() / ".cache" / "dragoman"))
    modules = "".join((_MODULES / name).read_text() for name in ("go.mod", "go.sum"))
    name = hashlib.sha256(f"{source}\0{modules}".encode()).hexdigest()[:16]
    program = cache / f"go-program-{name}"
    if not program.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        _build(go, source, cache, program)
    return program


def _build(go: str, source: str, cache: Path, program: Path) -> None:
    env = {
        **os.environ,
        "CGO_ENABLED": "0",  # no C compiler is needed
        "GOCACHE": str(cache / "go-build"),
        "GOMODCACHE": str(cache / "go-modules"),
        "GOFLAGS": "-mod=readonly -modcacherw",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    with tempfile.TemporaryDirectory(dir=cache, prefix="go-") as folder:
        work = Path(folder)
        for each in _MODULES.iterdir():
            shutil.copy(each, work)
        (work / "main.go").write_text(source)
        fetched = _run([go, "mod", "download"], work, env)
        if fetched.returncode:
            raise GoUnavailable(f"go could not fetch the modules:\n{fetched.stderr[-2000:]}")
        for command in ([go, "vet", "."], [go, "build", "-o", "program", "."]):
            done = _run(command, work, env)
            if done.returncode:
                raise ValueError(f"{' '.join(command[1:])}:\n{done.stderr[-2000:]}")
        (work / "program").replace(program)


def _run(argv: list[str], work: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=work, env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
