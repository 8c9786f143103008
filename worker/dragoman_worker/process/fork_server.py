"""The supervisor's side of the fork server: its start, its requests, its death.

The fork server imports the engine's libraries once and forks every replica from that state
(`forking.py`). Standard library only, like everything that is imported before the first replica.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from dragoman_connections.child import Command, spawn
from dragoman_worker.process.forking import LONGEST_MESSAGE

ANSWER_WITHIN_S: Final = 10.0
"""Seconds for two forks, which take some hundredths: the supervisor serves no page meanwhile."""


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
