"""The fork server: a process that imports the engine's libraries once and is forked per replica.

The first half is the supervisor's: the server's start, the requests to it, its death. The second
half runs in the server, which must have one thread and no event loop when it calls `serve`, and in
what is forked from it. Standard library only, like everything that is imported before the first
replica. The connection keeps messages apart and passes descriptors, so that a forked replica has
its link; the channels of `dragoman_connections.child` do neither.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dragoman_connections.child import Command, die_with_parent, spawn

LINK: Final = "{link}"
"""Stands in a request's argv for the descriptor that came with it."""
LONGEST_MESSAGE: Final = 131_072
ANSWER_WITHIN_S: Final = 10.0
"""Seconds for two forks, which take some hundredths: the supervisor serves no page meanwhile."""


_LOOK_S: Final = 0.001
_STATE: Final = {"forked": False}


class CannotFork(Exception):
    """The replica must be started in the ordinary way."""


class ForkServer:
    """One process that replicas are forked from; started again when it dies.

    A process that dies or refuses before it is ready is not started again.
    """

    def __init__(self, command: Command | None) -> None:
        """Without a command nothing is ever forked."""
        self._command = command if sys.platform == "linux" else None
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._listening: asyncio.AbstractEventLoop | None = None
        self._started_at = 0.0
        self._ready = False
        self._was_ready = False
        self.settled = asyncio.Event()
        """Set while it is known whether the next replica can be forked."""
        self.settled.set()
        self.on_ready: Callable[[float], None] = lambda _: None
        """Called with the seconds that a start took."""
        self.on_lost: Callable[[int], None] = lambda _: None
        """Called with the exit status of a process that was ready."""
        self.on_unavailable: Callable[[str], None] = lambda _: None
        """Called with the reason when there will be no fork server any more."""

    @property
    def pid(self) -> int | None:
        """Process id; None while there is no process."""
        return self._process.pid if self._process else None

    @property
    def ready(self) -> bool:
        """Whether a replica can be forked now."""
        return self._ready

    def prepare(self) -> bool:
        """Start the process unless it runs; return whether there is one or will be one."""
        if self._process is None and self._command is not None:
            try:
                self._start(self._command)
            except OSError as error:  # no memory, or no process
                self._give_up(error.strerror or str(error))
        return self._process is not None

    def listen(self) -> None:
        """Process the report that it is ready. Needs a running event loop."""
        if self._connection is not None and self._listening is None and not self._ready:
            self._listening = asyncio.get_running_loop()
            self._listening.add_reader(self._connection, self._receive)

    def fork(
        self, argv: Sequence[str], environment: Mapping[str, str], name: str, link: int
    ) -> int:
        """Return the process id of a replica that runs `argv`, LINK in it replaced. Blocks briefly.

        It is a child of this process. Raises CannotFork.
        """
        if not self._ready or self._connection is None:
            raise CannotFork("the fork server is not ready")
        request = {"argv": list(argv), "environment": dict(environment), "name": name}
        try:
            socket.send_fds(self._connection, [json.dumps(request).encode()], [link])
            answer = json.loads(self._connection.recv(LONGEST_MESSAGE))
        except (OSError, ValueError) as error:
            self.kill()  # a replica that it still forks finds its link closed, and exits
            raise CannotFork(f"the fork server does not answer ({error})") from error
        if "pid" not in answer:
            raise CannotFork(str(answer.get("error")))
        return int(answer["pid"])

    def kill(self) -> None:
        """Kill the process; `reaped` follows."""
        self._ready = False
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    def reaped(self, pid: int, status: int) -> None:
        """Forget the process if `pid` is its id; a child exited with `status`."""
        if self._process is None or self._process.pid != pid:
            return
        if not self._was_ready:
            self._receive()  # why it refuses, if it does
        self._ready = False
        self._forget(status)
        if self._was_ready:
            self.on_lost(status)
        else:
            self._give_up(f"it exited with status {status} before it was ready")
        self.settled.set()

    def close(self) -> None:
        """Kill the process and reap it."""
        if self._process is not None:
            self.kill()
            with suppress(ChildProcessError):
                self._forget(os.waitstatus_to_exitcode(os.waitpid(self._process.pid, 0)[1]))

    def _start(self, command: Command) -> None:
        # Stop signals stay blocked in it: it exits with this process, and signals are for that.
        process, ours = spawn(command, kind=socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_WITHIN_S)
        self._process, self._connection = process, ours
        self._started_at, self._was_ready = time.monotonic(), False
        self.settled.clear()

    def _receive(self) -> None:
        self._stop_listening()
        report = self._report()
        if report.get("event") == "ready":
            self._ready = self._was_ready = True
            self.on_ready(time.monotonic() - self._started_at)
        elif report.get("event") == "unfit":
            self._give_up(str(report["reason"]))
        else:
            return  # it exited: `reaped` follows
        self.settled.set()

    def _report(self) -> dict[str, Any]:
        if self._connection is None:
            return {}
        with suppress(OSError, ValueError):
            found = json.loads(self._connection.recv(LONGEST_MESSAGE))
            return found if isinstance(found, dict) else {}
        return {}

    def _give_up(self, reason: str) -> None:
        if self._command is not None:
            self._command = None
            self.on_unavailable(reason)

    def _forget(self, status: int) -> None:
        self._stop_listening()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.returncode = status  # reaped elsewhere, not by subprocess
            self._process = None

    def _stop_listening(self) -> None:
        if self._listening is not None and self._connection is not None:
            self._listening.remove_reader(self._connection)
        self._listening = None


@dataclass(frozen=True, slots=True)
class Forked:
    """What a forked process is to be: its arguments, and its name."""

    argv: Sequence[str]
    name: str

    def set_title(self, program: str) -> None:
        """Show program and name in the list of processes, where that can be set."""
        with suppress(ImportError):
            importlib.import_module("setproctitle").setproctitle(f"{program} {self.name}")


def forked() -> bool:
    """Whether a fork server has forked this process."""
    return _STATE["forked"]


def connected_to_supervisor(descriptor: int) -> socket.socket:
    """Return the connection that this process was started with; it dies with the supervisor.

    To be called first: see `_prepare_titles`.
    """
    _prepare_titles()
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    die_with_parent(connection)
    return connection


def _prepare_titles() -> None:
    """Let setproctitle find where the title goes, while the environment is as at the start.

    It looks beside the variables, and finds nothing once one has changed, as imports of vLLM do.
    """
    with suppress(ImportError):
        importlib.import_module("setproctitle").getproctitle()


def report_ready(connection: socket.socket) -> None:
    """Report that `serve` is about to be called."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # each forked process would write it again
    connection.sendall(json.dumps({"event": "ready"}).encode())


def report_unfit(connection: socket.socket, reason: str) -> None:
    """Report why this process must not be forked; it exits next."""
    connection.sendall(json.dumps({"event": "unfit", "reason": reason}).encode())


def serve(connection: socket.socket) -> Forked:
    """Fork a process per request; return only in the forked processes.

    Exits the process when the supervisor closes the connection.
    """
    supervisor = os.getppid()
    while True:
        message, descriptors, *_ = socket.recv_fds(connection, LONGEST_MESSAGE, 1)
        if not message:
            os._exit(0)
        request = json.loads(message)
        try:
            pid = _fork_for(supervisor)
        except OSError as error:
            _answer(connection, {"error": error.strerror or str(error)}, descriptors)
            continue
        if pid:
            _answer(connection, {"pid": pid}, descriptors)
            continue
        connection.close()
        _become_itself(request["environment"])
        (link,) = descriptors
        argv = [str(link) if part == LINK else part for part in request["argv"]]
        _STATE["forked"] = True
        return Forked(argv, request["name"])


def _answer(
    connection: socket.socket, answer: Mapping[str, Any], descriptors: Sequence[int]
) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(json.dumps(answer).encode())


def _fork_for(supervisor: int) -> int:
    """Fork twice, so that the process becomes a child of the supervisor, the nearest subreaper.

    Returns its process id here and 0 in it. Raises OSError.
    """
    reading, writing = os.pipe()
    try:
        middle = os.fork()
        if middle == 0:
            _fork_and_exit(supervisor, writing)
            return 0
        os.close(writing)
        writing = -1
        pid = os.read(reading, 32)
        os.waitpid(middle, 0)
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)
    if not pid:
        raise OSError("the second fork failed")
    return int(pid)


def _fork_and_exit(supervisor: int, writing: int) -> None:
    """Fork and exit; return only in the forked process, as a child of the supervisor."""
    middle = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os._exit(1)
    if pid:
        os.write(writing, str(pid).encode())
        os._exit(0)
    while os.getppid() == middle:
        time.sleep(_LOOK_S)
    if os.getppid() != supervisor:  # it is gone, and its death cannot be noticed any more
        os._exit(1)


def _become_itself(environment: Mapping[str, str]) -> None:
    """Change what the forked process has in common with its siblings and must not have."""
    os.environ.update(environment)
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    signal.set_wakeup_fd(-1)
