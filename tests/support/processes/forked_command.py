"""The console scripts as forked processes, which cost 0.1 s of CPU time instead of a whole second.

They have their own argv, environment, streams and exit status, like any process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support.processes.fork_server import fork_server, own_session
from support.processes.waiting import patient


def run_forked(
    name: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Run `dragoman` or `dragoman-worker`; the outcome is that of `subprocess.run`.

    Raises subprocess.TimeoutExpired when it does not exit in time.
    """
    environment = dict(os.environ if env is None else env)
    with tempfile.TemporaryDirectory(prefix="command-") as folder:
        given, out, err = (Path(folder, stream) for stream in ("in", "out", "err"))
        given.write_bytes(stdin)
        options = (name, arguments, environment, given, out, err)
        process = fork_server().Process(target=_run, args=options)
        process.start()
        process.join(patient(timeout_s))
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([name, *arguments], patient(timeout_s))
        streams = (stream.read_text(encoding="utf-8") for stream in (out, err))
        return subprocess.CompletedProcess([name, *arguments], process.exitcode, *streams)


def _run(
    name: str,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    given: Path,
    out: Path,
    err: Path,
) -> None:
    own_session(out, err, given)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [name, *arguments]
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    if name == "dragoman":
        from dragoman_producer.cli import main
    else:
        from dragoman_worker.__main__ import main
    main()
