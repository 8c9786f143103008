"""How does a replica talk to its supervisor, and die with it?

Standard library only: a replica does this before anything else.
The supervisor holds the other end of a pair of sockets. What the replica says goes through it, a
JSON line each; that it breaks tells the replica that its supervisor is gone.
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
from typing import Any, Final, Literal, NamedTuple

ABORT_SIGNAL: Final = signal.SIGUSR1
"""From the supervisor: end now. SIGTERM only drains, however often it comes, so that one to the
whole process group does what the one that the supervisor passes on does."""

FailureKind = Literal["settings", "unreachable", "failed"]

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


class GroupMember(NamedTuple):
    """A consumer's place in its consumer group, as the coordinator knows it."""

    group: str
    member: str


class ParentLink:
    """A replica's end of the line to its supervisor."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    @classmethod
    def adopt(cls, descriptor: int) -> ParentLink:
        """Take over the descriptor this process was started with; nothing else inherits it."""
        os.set_inheritable(descriptor, False)
        return cls(socket.socket(fileno=descriptor))

    def hold(self) -> None:
        """From now on, die at once when the supervisor does; Ctrl-C is for the supervisor alone.

        SIGINT was blocked in us since before we began, so none has been acted on; SIGTERM was so
        in the first of us, for its supervisor could not act on one yet.
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        if not _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
            threading.Thread(target=self._die_when_it_breaks, name="tether", daemon=True).start()
        elif self._is_broken():  # the supervisor died before the kernel was asked
            os.kill(os.getpid(), signal.SIGKILL)

    def ready(self) -> None:
        """Say that this replica takes jobs."""
        self._say(event="ready")

    def joined(self, membership: GroupMember) -> None:
        """Report the latest group membership, which the supervisor ends if this process cannot."""
        self._say(event="joined", **membership._asdict())

    def settled(self) -> None:
        """Say that this replica has brought a job to its end."""
        self._say(event="settled")

    def opened(self, record: str) -> None:
        """Say that a record which was being opened in a crash has been opened well."""
        self._say(event="opened", record=record)

    def failed(self, kind: FailureKind, message: str) -> None:
        """Say why this replica is about to end."""
        self._say(event="failed", kind=kind, message=message)

    def _say(self, **what: Any) -> None:
        with suppress(OSError):  # nobody listens any more
            self._line.sendall(json.dumps(what).encode() + b"\n")

    def _is_broken(self) -> bool:
        readable, _, _ = select.select([self._line], [], [], 0)
        return bool(readable)  # the supervisor never writes: readable is at its end

    def _die_when_it_breaks(self) -> None:
        with suppress(OSError):
            self._line.recv(1)
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class ReplicaSlot:
    """A replica's place at its supervisor: its number, where its pages are asked for, its line."""

    number: int
    socket: Path
    parent_link: ParentLink


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent dies; whether that can be (Linux)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
