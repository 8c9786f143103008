"""Replica processes: their start, their reports and signals, and the reaping of all children.

Standard library only, so that the first replica starts before anything slow is imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from dragoman_connections import child
from dragoman_connections.child import Frames, adopt_orphans, spawn
from dragoman_worker.process.fork_server import LINK, CannotFork, ForkServer
from dragoman_worker.process.parent_link import ABORT_SIGNAL, FailureKind

Command = Callable[[int, Path, str], Sequence[str]]
"""Argv of a replica from its number, the path of its HTTP socket and its link's descriptor."""

Connection = socket.socket

ORPHAN_WITHIN_S: Final = 10.0
"""Seconds until a killed process is reported as left: normally it is gone in milliseconds."""


class Process(Protocol):
    """A started process; `children` alone reaps it."""

    returncode: int | None

    @property
    def pid(self) -> int:
        """Process id."""
        ...


@dataclass(slots=True)
class ForkedProcess:
    """A process that the fork server has forked: a child of this one, like those of Popen."""

    pid: int
    returncode: int | None = None


class Replica:
    """One replica process from its start to its exit."""

    def __init__(self, process: Process, link: socket.socket) -> None:
        self._process = process
        self._link = link
        self._frames = Frames()
        self._listening: asyncio.AbstractEventLoop | None = None
        self.pid = process.pid
        self.forked = isinstance(process, ForkedProcess)
        self.started_at = time.monotonic()
        self.ready = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once the replica has settled a job."""
        self.exited = asyncio.Event()
        self.status: int | None = None
        """Exit status, or the negative number of the signal; None while it runs."""
        self.failure: tuple[FailureKind, str] | None = None
        """Kind and message of the failure that the replica reported."""
        self.on_opened: Callable[[str], None] = lambda _: None
        """Called with each record that was being opened in a crash and has now been opened."""

    @property
    def exit_reason(self) -> str:
        """Why the replica exited, in one clause for log and terminal."""
        if self.failure:
            return self.failure[1]
        status = self.status or 0
        return f"exited with status {status}" if status >= 0 else f"was killed by signal {-status}"

    def listen(self) -> None:
        """Process the replica's reports as they arrive."""
        if self.status is None:
            self._listening = asyncio.get_running_loop()
            self._listening.add_reader(self._link, self._receive)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process itself unless it has been reaped.

        Not by `Popen.send_signal`: it polls first, and so would reap a process that has just
        exited, whose exit `ChildProcesses.reap` would then never learn.
        """
        if self.status is None:
            os.kill(self.pid, number)  # a process that is not reaped keeps its id

    def stop(self) -> None:
        """Let the replica drain."""
        self.send(signal.SIGTERM)

    def abort(self) -> None:
        """Let the replica release its claims and exit."""
        self.send(ABORT_SIGNAL)

    def kill(self) -> None:
        """Kill the process."""
        self.send(signal.SIGKILL)

    def reaped(self, status: int) -> None:
        """Read the last reports and record the exit `status`; the process has been reaped."""
        self._receive()
        self._stop_listening()
        self._link.close()
        self._process.returncode = self.status = status  # reaped here, not by subprocess
        self.exited.set()

    def _receive(self) -> None:
        with suppress(BlockingIOError, ConnectionResetError):
            while data := self._link.recv(65_536):
                for report in self._frames.feed(data):
                    self._handle(json.loads(report))
            self._stop_listening()  # closed by the replica: it would stay readable for ever

    def _handle(self, report: dict[str, Any]) -> None:
        match report["event"]:
            case "ready":
                self.ready.set()
            case "settled":
                self.settled.set()
            case "opened":
                self.on_opened(report["record"])
            case _:
                self.failure = (report["kind"], report["message"])

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.remove_reader(self._link)
            self._listening = None


class ChildProcesses:
    """Starts and reaps replicas, and kills their orphans. Owns this process's children."""

    def __init__(
        self,
        command: Command,
        folder: Path,
        environment: Callable[[int], Mapping[str, str]] = lambda _: {},
        fork_server: child.Command | None = None,
    ) -> None:
        """Keep sockets in `folder`.

        `environment` returns the variables that a replica has besides those of this process.
        `fork_server` is the command of the process that replicas are forked from, if there is one.
        """
        self._command = command
        self.fork_server = ForkServer(fork_server)
        self._environment = environment
        self._folder = folder
        self._living: dict[int, Replica] = {}
        self._of_number: dict[int, Replica] = {}
        self._inherited: frozenset[int] = frozenset()
        self._reaped = asyncio.Event()

    def __enter__(self) -> Self:
        adopt_orphans()
        self._inherited = frozenset(_children())  # of a shell that became this process by exec
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
                replica.reaped(os.waitstatus_to_exitcode(os.waitpid(replica.pid, 0)[1]))
        self.fork_server.close()

    def socket(self, number: int) -> Path:
        """Return the path of the Unix socket of replica `number`'s HTTP pages."""
        return self._folder / f"{number}.sock"

    def replica(self, number: int) -> Replica | None:
        """Return the running process of replica `number`, or None."""
        replica = self.latest(number)
        return replica if replica is not None and replica.status is None else None

    def latest(self, number: int) -> Replica | None:
        """Return the last started process of replica `number`, which may have exited."""
        return self._of_number.get(number)

    def start(self, number: int, *, fork: bool = False) -> Replica:
        """Start replica `number` in this process group and session; fork it if that is possible.

        Raises OSError where the system allows no further process or file descriptor.
        """
        process, link = (self._forked(number) if fork else None) or spawn(
            lambda descriptor: self._command(number, self.socket(number), descriptor),
            env={**os.environ, **self._environment(number)},
        )
        link.setblocking(False)
        replica = Replica(process, link)
        self._living[replica.pid] = self._of_number[number] = replica
        return replica

    def _forked(self, number: int) -> tuple[Process, Connection] | None:
        """Return a process forked from the fork server, and the link; None if it cannot fork."""
        argv = self._command(number, self.socket(number), LINK)
        link, replica_end = socket.socketpair()
        try:
            with replica_end:
                pid = self.fork_server.fork(
                    argv, self._environment(number), f"replica {number}", replica_end.fileno()
                )
        except CannotFork:
            link.close()
            return None
        return ForkedProcess(pid), link

    @contextmanager
    def reaping(self) -> Iterator[None]:
        """Reap children as they exit, inside the context. Needs asyncio's own event loop."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self.reap)
        try:
            self.reap()
            yield
        finally:
            loop.remove_signal_handler(signal.SIGCHLD)

    def reap(self) -> None:
        """Reap every child that has exited, started or adopted."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                exit_code = os.waitstatus_to_exitcode(status)
                self.fork_server.reaped(pid, exit_code)
                if replica := self._living.pop(pid, None):
                    replica.reaped(exit_code)
        self._reaped.set()

    async def kill_orphans(self, report: Callable[[str, list[str]], None]) -> None:
        """Kill the processes that dead replicas left behind, and return when they are gone.

        An orphan of a living replica is killed too: its parent died, so no process waits for it.
        Calls `report` with "killed" and the names of the processes, and repeatedly with "left" and
        the names of those that the kernel does not release.
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
        own = {*self._living, self.fork_server.pid}
        return _children() - own - self._inherited


def _children() -> set[int]:
    """Return the direct children by /proc; none without /proc, where no orphan is adopted."""
    processes = (path.name for path in Path("/proc").glob("[0-9]*"))
    return {int(name) for name in processes if _parent(name) == os.getpid()}


def _parent(pid: str) -> int | None:
    with suppress(OSError, IndexError, ValueError):
        # The name, in parentheses, may contain any character.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[1])
    return None


def _name(pid: int) -> str:
    with suppress(OSError):
        return f"{Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()} ({pid})"
    return str(pid)
