"""A replica's exit is noticed whatever happens to it at the same time. Processes are real."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman_worker.process.children import ChildProcesses, Replica


def has_exited(pid: int) -> None:
    """Wait until a child has exited, and leave it to be reaped."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("signalled", [Replica.stop, Replica.abort, Replica.kill])
def test_a_signal_to_a_replica_that_has_just_exited_leaves_its_exit_to_be_noticed(
    tmp_path: Path, signalled: Callable[[Replica], None]
) -> None:
    exits = (sys.executable, "-S", "-c", "raise SystemExit(2)")
    with ChildProcesses(lambda *_: exits, tmp_path) as children:
        replica = children.start(0)
        has_exited(replica.pid)
        signalled(replica)
        children.reap()
        assert replica.exited.is_set()
        assert replica.status == 2
        assert children.replica(0) is None


def test_a_signal_to_a_reaped_replica_reaches_nobody(tmp_path: Path) -> None:
    exits = (sys.executable, "-S", "-c", "pass")
    with ChildProcesses(lambda *_: exits, tmp_path) as children:
        replica = children.start(0)
        has_exited(replica.pid)
        children.reap()
        replica.send(signal.SIGKILL)
        assert replica.status == 0
