"""Wrapper process that terminates its command when the parent process exits, for any reason.

`python parent_link.py GRACE_S COMMAND ...` runs the command in its own session and watches its
own stdin, a pipe held by the parent: the kernel closes the pipe even when the parent is killed
with SIGKILL. When stdin closes, or on SIGTERM, the command gets SIGTERM; GRACE_S seconds later its
process group gets SIGKILL. Processes that the command leaves behind, such as the engine of a dead
vLLM worker, are killed too: those of its process group, and on Linux those in other sessions.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType


def main() -> int:
    """Run the command until it or the parent exits; return the command's exit status."""
    grace_s, command = float(sys.argv[1]), sys.argv[2:]
    _adopt_orphans()
    # No signal may arrive between the start and the installation of the forwarding handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    process = subprocess.Popen(  # noqa: S603 - the parent's own command
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_unblock,  # noqa: PLW1509 - no thread runs yet
    )

    def terminate(_number: int, _frame: FrameType | None) -> None:
        process.terminate()
        signal.setitimer(signal.ITIMER_REAL, max(grace_s, 0.001))

    def kill(_number: int, _frame: FrameType | None) -> None:
        _kill_group(process.pid)

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, kill)
    threading.Thread(target=_watch_parent, name="parent-watch", daemon=True).start()
    _unblock()
    status = process.wait()
    _kill_group(process.pid)
    _kill_adopted()
    return status if status >= 0 else 128 - status


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _watch_parent() -> None:
    """Send SIGTERM to this process once the parent's end of stdin is closed."""
    # os.read, not sys.stdin: a buffered reader's lock would be held when the process exits.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _adopt_orphans() -> None:
    # PR_SET_CHILD_SUBREAPER: descendants that lose their parent become children of this process.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _kill_adopted() -> None:
    # Each killed process may leave its own children to this process.
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _children() -> list[int]:
    lists = Path("/proc/self/task").glob("*/children")
    return [int(pid) for file in lists for pid in file.read_text().split()]


if __name__ == "__main__":
    sys.exit(main())
