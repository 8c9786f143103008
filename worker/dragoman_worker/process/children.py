"""How do replica processes start, and how is nothing left of them when they end?

Standard library only, so that the first replica starts before anything slow is imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dragoman_worker.process.memberships import Memberships
from dragoman_worker.process.parent_link import (
    ABORT_SIGNAL,
    FailureKind,
    GroupMember,
    adopt_orphans,
)

Command = Callable[[int, Path, int], Sequence[str]]
"""The argv of a replica: from its number, the path of its HTTP socket, its tether's descriptor."""

ORPHAN_WITHIN_S: Final = 10.0
"""A killed process is gone in milliseconds, unless the kernel holds it: then this is said."""


class Replica:
    """One replica process from its start to its end."""

    def __init__(
        self, process: subprocess.Popen[bytes], line: socket.socket, memberships: Memberships
    ) -> None:
        self._process = process
        self._line = line
        self._heard = b""
        self._memberships = memberships
        self._membership: GroupMember | None = None
        self._listening: asyncio.AbstractEventLoop | None = None
        self.pid = process.pid
        self.started_at = time.monotonic()
        self.ready = asyncio.Event()
        self.settled = asyncio.Event()
        """It has brought a job to its end."""
        self.ended = asyncio.Event()
        self.status: int | None = None
        """How it ended: its exit status, or the number of the signal, negative."""
        self.failure: tuple[FailureKind, str] | None = None
        """Why it ended, in its own words."""
        self.on_opened: Callable[[str], None] = lambda _: None
        """Called with each record that had been opened in a crash and now opened well."""

    @property
    def how_it_ended(self) -> str:
        """One clause for a person."""
        if self.failure:
            return self.failure[1]
        status = self.status or 0
        return f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"

    def listen(self) -> None:
        """Hear what it says as soon as it says it."""
        if self.status is None:
            self._listening = asyncio.get_running_loop()
            self._listening.add_reader(self._line, self._hear)

    def send(self, number: signal.Signals) -> None:
        """Signal the process itself, if it has not ended."""
        if self.status is None:
            self._process.send_signal(number)

    def stop(self) -> None:
        """Let it drain."""
        self.send(signal.SIGTERM)

    def abort(self) -> None:
        """Let it give back what it has and end."""
        self.send(ABORT_SIGNAL)

    def kill(self) -> None:
        """End it without its doing."""
        self.send(signal.SIGKILL)

    def end(self, status: int) -> None:
        """It was reaped with `status`."""
        self._hear()
        self._hush()
        self._line.close()
        self._process.returncode = self.status = status  # reaped here, not by subprocess
        if status and self._membership is not None:  # with status 0 it has left its group
            self._memberships.end(self._membership)
        self.ended.set()

    def _hear(self) -> None:
        with suppress(BlockingIOError, ConnectionResetError):
            while said := self._line.recv(65_536):
                self._heard += said
            self._hush()  # closed at its side: would be readable for ever
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            self._heed(json.loads(line))

    def _heed(self, said: dict[str, Any]) -> None:
        match said["event"]:
            case "ready":
                self.ready.set()
            case "joined":
                self._membership = GroupMember(said["group"], said["member"])
                self._memberships.prepare()
            case "settled":
                self.settled.set()
            case "opened":
                self.on_opened(said["record"])
            case _:
                self.failure = (said["kind"], said["message"])

    def _hush(self) -> None:
        if self._listening is not None:
            self._listening.remove_reader(self._line)
            self._listening = None


class ChildProcesses:
    """Starts replicas, reaps them and all that they leave behind. Owns this process's children."""

    def __init__(self, command: Command, folder: Path, end_memberships: Sequence[str] = ()) -> None:
        """`end_memberships`: the argv of the process that does so for dead replicas."""
        self._command = command
        self._memberships = Memberships(end_memberships)
        self._folder = folder
        self._living: dict[int, Replica] = {}
        self._of_number: dict[int, Replica] = {}
        self._not_ours: frozenset[int] = frozenset()
        self._reaped = asyncio.Event()

    def __enter__(self) -> Self:
        adopt_orphans()
        self._not_ours = frozenset(_children())  # of a shell that became us by exec
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for replica in list(self._living.values()):
            replica.kill()
            with suppress(ChildProcessError):
                replica.end(os.waitstatus_to_exitcode(os.waitpid(replica.pid, 0)[1]))
        self._memberships.close()  # last: the end of a replica may have started it

    def socket(self, number: int) -> Path:
        """Where replica `number` serves its pages."""
        return self._folder / f"{number}.sock"

    def replica(self, number: int) -> Replica | None:
        """The running process of replica `number`, if there is one."""
        replica = self.latest(number)
        return replica if replica is not None and replica.status is None else None

    def latest(self, number: int) -> Replica | None:
        """The last start of replica `number`; it may have ended."""
        return self._of_number.get(number)

    def start(self, number: int) -> Replica:
        """Start replica `number` in our process group and session."""
        with ExitStack() as opened:
            ours, theirs = socket.socketpair()
            opened.enter_context(theirs)
            ours.setblocking(False)
            opened.enter_context(_sigint_blocked())
            process = subprocess.Popen(  # noqa: S603  our own command
                self._command(number, self.socket(number), theirs.fileno()),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        replica = Replica(process, ours, self._memberships)
        self._living[process.pid] = self._of_number[number] = replica
        return replica

    @contextmanager
    def reaping(self) -> Iterator[None]:
        """While inside, children are reaped as they end. Needs asyncio's own event loop."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self.reap)
        try:
            self.reap()
            yield
        finally:
            loop.remove_signal_handler(signal.SIGCHLD)

    def reap(self) -> None:
        """Wait for every child that has ended, known or adopted."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                exit_code = os.waitstatus_to_exitcode(status)
                self._memberships.reaped(pid, exit_code)
                if replica := self._living.pop(pid, None):
                    replica.end(exit_code)
        self._reaped.set()

    async def end_orphans(self, report: Callable[[str, list[str]], None]) -> None:
        """Kill what dead replicas left behind, and return when it is gone.

        An orphan of a replica that lives goes too: its parent died, so nobody waits for it.
        `report` is told "killed" with the names of the processes, and "left" with the names of
        those that the kernel does not let go, which goes on until it does.
        """
        killed: set[int] = set()
        while orphans := self._orphans():
            if new := orphans - killed:
                report("killed", [_name(pid) for pid in sorted(new)])
            killed |= orphans
            for pid in orphans:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._reaped.clear()
            try:
                async with asyncio.timeout(ORPHAN_WITHIN_S):
                    await self._reaped.wait()
            except TimeoutError:
                report("left", [_name(pid) for pid in sorted(self._orphans())])

    def _orphans(self) -> set[int]:
        self.reap()
        return _children() - set(self._living) - {self._memberships.pid} - self._not_ours


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """A replica inherits it and unblocks when it has learned to ignore Ctrl-C; we lose none."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _children() -> set[int]:
    """Our direct children, by /proc; none where there is no /proc, and no orphan comes to us."""
    processes = (place.name for place in Path("/proc").glob("[0-9]*"))
    return {int(name) for name in processes if _parent(name) == os.getpid()}


def _parent(pid: str) -> int | None:
    with suppress(OSError, IndexError, ValueError):
        # The name, in parentheses, may itself contain anything.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[1])
    return None


def _name(pid: int) -> str:
    with suppress(OSError):
        return f"{Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()} ({pid})"
    return str(pid)
