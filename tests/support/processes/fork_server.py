"""The fork server of the tests: a process that has imported the worker and the client once."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from typing import Final
from unittest import mock

PRELOADED: Final = "support.processes.preloaded"


def fork_server() -> ForkServerContext:
    """Return the context whose processes are forked from the server, which runs from now on.

    Python 3.11's server ignores this process' `sys.path`, and what it cannot import it leaves out
    in silence: without the variable every fork would import the worker by itself, in 4.5 s.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        forkserver.ensure_running()
    return context
