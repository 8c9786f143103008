"""The sockets between vLLM's front end and its engine process: their folder, messages and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = "VLLM_RPC_BASE_PATH"
_LONGEST: Final = 66
"""Most characters of the sockets' folder: vLLM adds 37, and a path has 103 on macOS."""
_CANCEL_S: Final = 5.0


@contextmanager
def sockets_in(folder: Path) -> Iterator[None]:
    """Let vLLM create its sockets in a folder that is removed with the engine.

    vLLM removes none: each start left two files in the temporary directory.
    """
    if _FOLDER in os.environ or len(str(folder)) > _LONGEST:
        yield
        return
    os.environ[_FOLDER] = str(folder)
    try:
        yield
    finally:
        del os.environ[_FOLDER]


class Messages:
    """Counts messages of all engine processes together, data-parallel ones too.

    vLLM's front end checks each message that it receives with `validate_alive`, before anything
    else: those with outputs, with statistics alone, and empty ones. Its gauges are no sign of life:
    they keep their last values while the engine hangs.

    One of several processes that hangs is not found by that: its requests run into
    `retry.attempt_timeout_s`, and vLLM gives new ones to those with fewer in flight.
    """

    def __init__(self) -> None:
        self._received = 0
        self._counted = False

    def count(self) -> int:
        """Return the messages so far; without `watch` the engine always seems alive."""
        if not self._counted:
            self._received += 1
        return self._received

    def watch(self, client: Any) -> None:
        """Count from now on what vLLM's AsyncLLM receives."""
        resources = client.engine_core.resources
        check = resources.validate_alive

        def counting(frames: Any) -> None:
            self._received += 1
            check(frames)

        resources.validate_alive = counting
        self._counted = True


async def stop_outputs(client: Any) -> None:
    """Cancel vLLM's task that reads outputs, which would log the shutdown as a crash."""
    handler = client.output_handler
    if isinstance(handler, asyncio.Task):
        handler.cancel()
        await asyncio.wait([handler], timeout=_CANCEL_S)


def close_sockets(client: Any) -> None:
    """Destroy the ZeroMQ context, which vLLM leaves behind with two threads and open files."""
    context = client.engine_core.resources.ctx
    if context is not None:
        context.destroy(linger=0)
