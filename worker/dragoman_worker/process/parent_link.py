"""Link from a replica to its supervisor: reports, and the replica's exit if the supervisor dies.

Standard library only: a replica sets this up before anything else.
The link is a pair of sockets. The replica sends one JSON line per report. The link breaks when the
supervisor is gone.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

ABORT_SIGNAL: Final = signal.SIGUSR1
"""Sent by the supervisor: exit now, without draining.

Repeated SIGTERMs only drain, so a signal to the process group and one forwarded by the supervisor
act alike.
"""

TERMINAL_SIGNALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""What a terminal sends to its foreground process group; replicas leave it to the supervisor."""

FailureKind = Literal["settings", "device", "unreachable", "failed"]
"""`device`: a setting does not fit the memory of this replica's GPUs, and may fit that of others.

The exit status is 2 with `settings` and `device`, else 1.
"""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


class ParentLink:
    """The replica's end of the link to its supervisor."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def adopt(cls, descriptor: int) -> ParentLink:
        """Use the descriptor that this process was started with; no child process inherits it."""
        os.set_inheritable(descriptor, False)
        return cls(socket.socket(fileno=descriptor))

    def hold(self) -> None:
        """Die when the supervisor dies, and leave what a terminal sends to it, from now on.

        The supervisor started this process with these signals blocked, so none has been lost. The
        first replica also has SIGTERM blocked, because its supervisor could not forward one yet.
        """
        for number in TERMINAL_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*TERMINAL_SIGNALS, signal.SIGTERM})
        if not die_with_parent(self._connection):
            threading.Thread(target=self._die_when_closed, name="parent-link", daemon=True).start()

    def close(self) -> None:
        """Close this process' copy, in a child that has been forked."""
        self._connection.close()

    def ready(self) -> None:
        """Report that this replica accepts jobs."""
        self._report(event="ready")

    def settled(self) -> None:
        """Report that this replica has settled a job."""
        self._report(event="settled")

    def opened(self, record: str) -> None:
        """Report that a record which was being opened in a crash has now been opened."""
        self._report(event="opened", record=record)

    def failed(self, kind: FailureKind, message: str) -> None:
        """Report why this replica is about to exit."""
        self._report(event="failed", kind=kind, message=message)

    def _report(self, **fields: Any) -> None:
        with suppress(OSError):  # the supervisor is gone
            self._connection.sendall(json.dumps(fields).encode() + b"\n")

    def _die_when_closed(self) -> None:
        with suppress(OSError):
            self._connection.recv(1)
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class ReplicaSlot:
    """A replica's number, the Unix socket of its HTTP pages, and its link to the supervisor."""

    number: int
    socket: Path
    parent_link: ParentLink


def adopt_orphans() -> bool:
    """Become the parent of all orphaned descendants; return whether it worked (Linux only)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(connection: socket.socket) -> bool:
    """Kill this process as soon as its parent dies; return whether that is possible (Linux only).

    `connection` leads to the parent, which has not written yet: readable means closed.
    """
    if not _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        return False
    if select.select([connection], [], [], 0)[0]:  # it died before the kernel was asked
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
