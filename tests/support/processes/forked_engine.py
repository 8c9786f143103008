"""vLLM's engine processes for engines in pytest's own process, forked instead of spawned.

A spawned one imports vLLM by itself: 8 of the 11 s of CPU time that its start takes. `tune`, which
a test runs on vLLM, spawns them.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any
from unittest import mock

from support.processes.fork_server import fork_server


class _Process(ForkServerProcess):
    """A forked process with the environment of the process that starts it."""

    def start(self) -> None:
        self._environment = dict(os.environ)
        super().start()

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self._environment)
        super().run()


class _Context(ForkServerContext):
    Process = _Process


@contextmanager
def forked_engines() -> Iterator[None]:
    """Let vLLM fork the engine processes that it would spawn."""
    fork_server(vllm=True)
    utils: Any = importlib.import_module("vllm.v1.engine.utils")
    with mock.patch.object(utils, "get_mp_context", _Context):
        yield
