"""The fork server of the tests: a process that has imported the worker and the client once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final
from unittest import mock

PRELOADED: Final = "support.processes.preloaded"
PRELOADED_VLLM: Final = "support.processes.preloaded_vllm"


def fork_server(*, vllm: bool = False) -> ForkServerContext:
    """Return the context whose processes are forked from the server, which runs from now on.

    With `vllm` the server has imported vLLM as well, in 9 s of CPU time.

    Python 3.11's server ignores this process' `sys.path`, and what it cannot import it leaves out
    in silence: without the variable every fork would import the worker by itself, in 4.5 s.
    """
    context = multiprocessing.get_context("forkserver")
    server: Any = forkserver._forkserver
    if vllm and PRELOADED_VLLM not in server._preload_modules:
        server._stop()
        context.set_forkserver_preload([PRELOADED_VLLM, PRELOADED])
    elif PRELOADED not in server._preload_modules:
        context.set_forkserver_preload([PRELOADED])
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        forkserver.ensure_running()
    return context


class Forked:
    """The methods of `subprocess.Popen` that `ChildProcess` uses, for a forked process."""

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def own_session(out: Path, err: Path, given: Path = Path(os.devnull)) -> None:
    """Give this forked process a session of its own, its input, and these files as its output."""
    os.setsid()
    os.dup2(os.open(given, os.O_RDONLY), 0)
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), number)
