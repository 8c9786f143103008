"""Free TCP ports of this machine for the services of a test."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

# Below the kernel's ephemeral range (32768 upwards), so that no outgoing connection of another
# test takes a port between this check and the service's bind.
_LOWEST, _HIGHEST = 15_000, 32_000


def free_ports(count: int) -> list[int]:
    """Return `count` different free ports of 127.0.0.1; raises OSError if too few are found."""
    ports: list[int] = []
    with ExitStack() as held:
        for _attempt in range(50 * count):
            port = random.randint(_LOWEST, _HIGHEST)
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"no {count} free ports between {_LOWEST} and {_HIGHEST}")


def free_port() -> int:
    """Return one free port of 127.0.0.1."""
    return free_ports(1)[0]
