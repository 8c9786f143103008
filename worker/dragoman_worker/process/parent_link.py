"""Link from a replica to its supervisor: reports, and the replica's exit if the supervisor dies.

Standard library only: a replica sets this up before anything else. A report is a JSON object.
"""

from __future__ import annotations

import json
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from dragoman_connections.child import connected, framed

ABORT_SIGNAL: Final = signal.SIGUSR1
"""Sent by the supervisor: exit now, without draining.

Repeated SIGTERMs only drain, so a signal to the process group and one forwarded by the supervisor
act alike.
"""

TERMINAL_SIGNALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""What a terminal sends to its foreground process group; replicas leave it to the supervisor."""

FailureKind = Literal["settings", "device", "unreachable", "dropped", "failed"]
"""`device`: a setting does not fit the memory of this replica's GPUs, and may fit that of others.
`dropped`: records are lost, which no restart brings back.

The exit status is 2 with `settings` and `device`, else 1.
"""


class ParentLink:
    """The replica's end of the link to its supervisor."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def hold(cls, descriptor: int) -> ParentLink:
        """Return the link that this process was started with, and die with the supervisor.

        From now on this process leaves to the supervisor what a terminal sends.
        """
        return cls(connected(descriptor, ignored=TERMINAL_SIGNALS))

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
            self._connection.sendall(framed(json.dumps(fields).encode()))


@dataclass(frozen=True, slots=True)
class ReplicaSlot:
    """A replica's number, the Unix socket of its HTTP pages, and its link to the supervisor."""

    number: int
    socket: Path
    parent_link: ParentLink
