"""Wrapper process that terminates its command when the parent process exits, for any reason.

`python -m dragoman_producer.box.parent_link DESCRIPTOR GRACE_S LOCK COMMAND ...` runs the command
in its own session and watches the channel to its parent, which the kernel closes even when the
parent is killed with SIGKILL. When the channel closes, or on SIGTERM, the command gets SIGTERM;
GRACE_S seconds later its process group gets SIGKILL. Processes that the command leaves behind, such
as the engine of a dead vLLM worker, are killed too: those of its process group, and on Linux those
in other sessions. On Linux the command is also killed if this process is.

LOCK, unless empty, is a file that is locked before the command starts and until it has exited: an
earlier command that still stops is waited for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

from dragoman_connections.child import (
    STOP_SIGNALS,
    Channel,
    adopt_orphans,
    hung_up,
    killed_with_parent,
)

_LOOK_S: Final = 0.05
_SEGMENT: Final = re.compile(r"/dev/shm/psm_\w+")  # noqa: S108  read from maps


def main() -> int:
    """Run the command until it or the parent exits; return the command's exit status."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    grace_s, lock, command = float(sys.argv[2]), sys.argv[3], sys.argv[4:]
    adopt_orphans()
    os.umask(0o077)  # what the command writes holds texts of its user
    held = _locked(lock, connection)
    parent = Channel(connection)
    # The parent has blocked the stop signals, until the forwarding handler is installed.
    process = subprocess.Popen(  # noqa: S603 - the parent's own command
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=held,
        preexec_fn=_prepare,  # noqa: PLW1509 - no thread runs yet
    )

    def terminate(_number: int, _frame: FrameType | None) -> None:
        process.terminate()
        signal.setitimer(signal.ITIMER_REAL, max(grace_s, 0.001))

    def kill(_number: int, _frame: FrameType | None) -> None:
        _kill_group(process.pid)

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, kill)
    watch = threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True)
    watch.start()
    _unblock()
    status = process.wait()
    _kill_group(process.pid)
    _kill_adopted()
    return status if status >= 0 else 128 - status


def _locked(path: str, connection: socket.socket) -> list[int]:
    """Return the descriptor of the lock, which the command inherits; exit if the parent dies."""
    if not path:
        return []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if hung_up(connection):
                raise SystemExit(1) from None
            time.sleep(_LOOK_S)
        else:
            return [descriptor]


def _prepare() -> None:
    killed_with_parent()
    _unblock()


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _watch(parent: Channel) -> None:
    """Send SIGTERM to this process once the parent has closed the channel, or has died."""
    while parent.receive() is not None:
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _kill_group(leader: int) -> None:
    left = _shared_memory()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    for segment in left:
        segment.unlink(missing_ok=True)


def _shared_memory() -> set[Path]:
    """Return the segments that the command's processes have mapped (Linux).

    Python removes the segments of a process that is killed, unless its tracker, which does so, is
    killed with it.
    """
    found: set[Path] = set()
    waiting = _children()
    while waiting:
        pid = waiting.pop()
        waiting += _children(str(pid))
        with contextlib.suppress(OSError):
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
            found |= {Path(name) for name in _SEGMENT.findall(maps)}
    return found


def _kill_adopted() -> None:
    # Each killed process may leave its own children to this process.
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _children(of: str = "self") -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{of}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has exited
            found += map(int, file.read_text().split())
    return found


if __name__ == "__main__":
    sys.exit(main())
