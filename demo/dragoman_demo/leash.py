"""How does a child process end with its parent, whatever ends the parent?

`python -m dragoman_demo.leash GRACE_S COMMAND ...` runs the command in a session of its own and
watches its own stdin, a pipe that the parent holds: the kernel closes it even when the parent is
killed with SIGKILL. Then, or on SIGTERM, the command gets SIGTERM, and after the grace its process
group gets SIGKILL. What a command leaves behind, as a dead vLLM worker may leave its engine, is
killed too: with its group, and on Linux in sessions of its own as well.
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
    """Run the command on the leash; the exit status is the command's."""
    grace_s, command = float(sys.argv[1]), sys.argv[2:]
    _adopt_orphans()
    # No signal may come between the start and the handler that passes it on.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    process = subprocess.Popen(  # noqa: S603 - the parent's own command
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_unblock,  # noqa: PLW1509 - no thread runs yet
    )

    def end(_number: int, _frame: FrameType | None) -> None:
        process.terminate()
        signal.setitimer(signal.ITIMER_REAL, max(grace_s, 0.001))

    def kill(_number: int, _frame: FrameType | None) -> None:
        _kill_group(process.pid)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, kill)
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    _unblock()
    status = process.wait()
    _kill_group(process.pid)
    _kill_adopted()
    return status if status >= 0 else 128 - status


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _end_with_parent() -> None:
    # os.read, not sys.stdin: a buffered reader's lock would be held when the process exits.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _adopt_orphans() -> None:
    # PR_SET_CHILD_SUBREAPER: descendants that lose their parent become our children, not init's.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _kill_adopted() -> None:
    # Each one that dies may leave us its own children.
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
