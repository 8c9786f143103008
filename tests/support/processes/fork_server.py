"""The fork server of the tests: a process that has imported the worker and the client once."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext


def fork_server() -> ForkServerContext:
    """Return the context whose processes are forked from the server."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.processes.preloaded"])
    return context
