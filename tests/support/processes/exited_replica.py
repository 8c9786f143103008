"""A replica that has exited when it gets a signal.

Run this in a process of its own: `ChildProcesses` adopts orphans and reaps all children.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dragoman_worker.process.children import ChildProcesses, Replica

STATUS = 2


def signalled_after_its_exit(folder: Path, method: str, *, reaped: bool) -> int | None:
    """Call a method of a replica that has just exited; return the exit status that is noticed.

    With `reaped` its exit has been noticed before.
    """
    exits = (sys.executable, "-S", "-c", f"raise SystemExit({STATUS})")
    with ChildProcesses(lambda *_: exits, folder) as children:
        replica = children.start(0)
        os.waitid(os.P_PID, replica.pid, os.WEXITED | os.WNOWAIT)  # it is left to be reaped
        if reaped:
            children.reap()
        getattr(Replica, method)(replica)
        children.reap()
        return replica.status
