"""Standby process that ends the consumer group memberships of dead replicas.

Only the standby process connects to the broker; it runs `kafka/leave_group.py`.
Standard library only, like everything that is imported before the first replica starts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from dragoman_worker.process.parent_link import GroupMember
from dragoman_worker.process.signals import stop_signals_blocked


class LeaveGroupProcess:
    """One standby process, started early, because its imports take seconds on a busy machine.

    It reads requests from a pipe and exits when the pipe closes, so it never outlives its parent.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Without a command no membership is ended, and the broker's session timeout applies."""
        self._command = command
        self._standby: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the standby process; None while there is none."""
        return self._standby.pid if self._standby else None

    def prepare(self) -> None:
        """Start the standby process unless it runs."""
        if self._standby is None and self._command:
            with (
                stop_signals_blocked()
            ):  # it exits when the pipe closes; signals are for its parent
                standby = subprocess.Popen(self._command, stdin=subprocess.PIPE, bufsize=0)  # noqa: S603
            os.set_blocking(_pipe(standby).fileno(), False)
            self._standby = standby

    def request(self, membership: GroupMember) -> None:
        """Request the end of a membership. Does not wait, never raises."""
        line = json.dumps(membership._asdict()).encode() + b"\n"
        with suppress(OSError):  # no process can be started
            self.prepare()
            try:
                self._send(line)
            except BrokenPipeError:  # it died, and has not been reaped yet
                self.close()
                self.prepare()
                self._send(line)

    def reaped(self, pid: int, status: int) -> None:
        """Forget the standby process if `pid` is its id; a child exited with `status`."""
        if self._standby is not None and self._standby.pid == pid:
            self._forget(status)

    def close(self) -> None:
        """Kill the standby process and reap it."""
        if self._standby is not None:
            self._standby.kill()
            self._forget(self._standby.wait())

    def _send(self, line: bytes) -> None:
        if self._standby is not None:
            _pipe(self._standby).write(line)  # dropped if hundreds are waiting already

    def _forget(self, status: int) -> None:
        if self._standby is not None:
            self._standby.returncode = status  # reaped elsewhere, not by subprocess
            _pipe(self._standby).close()
            self._standby = None


def _pipe(standby: subprocess.Popen[bytes]) -> IO[bytes]:
    assert standby.stdin is not None  # noqa: S101  opened as a pipe above
    return standby.stdin
