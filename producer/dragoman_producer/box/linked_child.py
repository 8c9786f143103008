"""Commands of a box, which terminate with this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from dragoman_connections.child import ChildProcess
from dragoman_producer.box.failures import writing
from dragoman_producer.box.logs import last_lines

_KILLING_S: Final = 30.0
"""Seconds for the parent link to kill what ignores SIGTERM. Killed earlier, on a machine that
stalls, it would leave the command's own children behind."""


class ChildFailed(Exception):
    """A child process did not start, or exited early; the message holds its last lines."""


class LinkedChild:
    """A command that runs while the context is open, with its output in the file `log`.

    The command terminates when the context is left, and also when this process is killed (see
    `parent_link`). It waits for the file `lock`, which it holds until it has exited.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        grace_s: float = 5.0,
        lock: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self._command = list(command)
        self._grace_s = grace_s
        self._lock = "" if lock is None else str(lock)
        self._env = own_environment() if env is None else dict(env)
        self._since = 0
        self._process: ChildProcess | None = None

    async def __aenter__(self) -> Self:
        self._since = self.log.stat().st_size if self.log.exists() else 0
        with writing(self.log):
            opened = self._output()
        with opened as output:
            self._process = await ChildProcess.start(
                lambda descriptor: (
                    *(sys.executable, "-P", "-m", "dragoman_producer.box.parent_link"),
                    *(descriptor, str(self._grace_s), self._lock, *self._command),
                ),
                env=self._env,
                stdout=output,
                stderr=output,
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            await self._process.end(self._grace_s + _KILLING_S)

    def _output(self) -> BinaryIO:
        descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "ab")

    @property
    def exited(self) -> bool:
        """Whether the command is not running: not started yet, or exited."""
        return self._process is None or self._process.status is not None

    @property
    def exit_status(self) -> int | None:
        """Exit status of the command; None while it runs."""
        return None if self._process is None else self._process.status

    async def wait(self) -> int:
        """Wait until the command exits by itself; return its exit status."""
        if self._process is None:
            raise RuntimeError("the child is not started")
        return await self._process.wait()

    def last_lines(self, count: int) -> str:
        """Return the last `count` lines of the command's output."""
        return last_lines(self.log, count, self._since)


def own_environment() -> dict[str, str]:
    """Return an environment in which a child imports what this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
