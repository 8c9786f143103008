"""The fork server's loop: forks a child of the supervisor per request, and runs on in each child.

Standard library only. The process must have one thread and no event loop when it calls `serve`.
The requests come from `fork_server.py`.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dragoman_connections.child import die_with_parent

LINK: Final = "{link}"
"""Stands in a request's argv for the descriptor that came with it."""
LONGEST_MESSAGE: Final = 131_072

_LOOK_S: Final = 0.001


_STATE: Final = {"forked": False}


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


def connected(descriptor: int) -> socket.socket:
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
