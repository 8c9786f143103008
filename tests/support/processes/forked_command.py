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
    name: str, *arguments: str, env: Mapping[str, str] | None = None, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run `dragoman` or `dragoman-worker`; the outcome is that of `subprocess.run`.

    Raises subprocess.TimeoutExpired when it does not exit in time.
    """
    environment = dict(os.environ if env is None else env)
    with tempfile.TemporaryDirectory(prefix="command-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        options = (name, arguments, environment, out, err)
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
    name: str, arguments: tuple[str, ...], environment: dict[str, str], out: Path, err: Path
) -> None:
    own_session(out, err)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [name, *arguments]
    if name == "dragoman":
        from dragoman_producer.cli import main
    else:
        from dragoman_worker.__main__ import main
    main()
