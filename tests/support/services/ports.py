"""Free TCP ports of this machine for the services of a test."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO

# Below the kernel's ephemeral range (32768 upwards), so that no outgoing connection of another
# test takes a port between this check and the service's bind.
_LOWEST, _HIGHEST = 15_000, 32_000
_taken: set[int] = set()


def free_ports(count: int, *, highest: int = _HIGHEST) -> list[int]:
    """Return `count` different free ports of 127.0.0.1; raises OSError if too few are found.

    No other test gets them while this process lives, not even one in another process: a service
    binds them later, and one that is stopped may start again on the same port.
    """
    ports: list[int] = []
    with ExitStack() as held:
        for _attempt in range(50 * count):
            port = random.randint(_LOWEST, highest)
            if not _reserved(port):
                continue
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"no {count} free ports between {_LOWEST} and {highest}")


def free_port(*, highest: int = _HIGHEST) -> int:
    """Return one free port of 127.0.0.1."""
    return free_ports(1, highest=highest)[0]


def _reserved(port: int) -> bool:
    """Reserve a port for this process; return whether nobody has reserved it before."""
    if port in _taken:
        return False
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:  # another process has it
        return False
    _taken.add(port)
    return True


@cache
def _reservations() -> IO[bytes]:
    """Return a file in which a process locks the byte of each port that it has reserved."""
    return Path(tempfile.gettempdir(), f"dragoman-test-ports-{os.getuid()}").open("ab")
