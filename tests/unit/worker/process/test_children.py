"""A replica's exit is noticed whatever happens to it at the same time. Processes are real."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from dragoman_worker.process.children import ChildProcesses
from support.processes.exited_replica import STATUS, signalled_after_its_exit
from support.processes.fork_server import fork_server


@pytest.mark.parametrize("reaped", [False, True])
@pytest.mark.parametrize("method", ["stop", "abort", "kill"])
def test_the_exit_of_a_replica_is_noticed_though_a_signal_comes_right_after_it(
    tmp_path: Path, method: str, *, reaped: bool
) -> None:
    with ProcessPoolExecutor(1, mp_context=fork_server()) as own_process:
        noticed = own_process.submit(signalled_after_its_exit, tmp_path, method, reaped=reaped)
        assert noticed.result() == STATUS


def test_a_replica_that_cannot_be_started_leaves_nothing_behind(tmp_path: Path) -> None:
    children = ChildProcesses(lambda *_: [str(tmp_path / "missing")], tmp_path)
    with pytest.raises(FileNotFoundError):
        children.start(0)
    assert children.latest(0) is None
