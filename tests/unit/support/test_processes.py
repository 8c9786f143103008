"""Processes of the tests exit with their test, and waits on them fail early with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.processes.child_process import ChildProcess, command
from support.processes.fork_server import PRELOADED, fork_server
from support.processes.waiting import NotInTime, eventually, patient, wait_until


def test_a_wait_for_output_returns_once_it_is_written(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('ready'); import time; time.sleep(100)"]
    with ChildProcess(argv, log=tmp_path / "log") as child:
        child.wait_for(lambda: "ready" in child.output, timeout_s=20, what="ready")
        assert child.running
    assert child.returncode == -15


def test_a_wait_for_a_process_that_exited_fails_at_once_with_its_output(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import sys; print('out'); sys.exit('no broker')"]
    with (
        ChildProcess(argv, log=tmp_path / "log", split_streams=True) as child,
        pytest.raises(NotInTime, match=r"(?s)exited with 1 before ready.*no broker"),
    ):
        child.wait_for(lambda: "ready" in child.output, timeout_s=60, what="ready")
    assert (child.output, child.errors) == ("out\n", "no broker\n")


@pytest.mark.parametrize("grandchild", ["sleep 1000", "setsid sleep 1000"])
def test_grandchildren_of_a_killed_process_are_killed_with_the_context(
    tmp_path: Path, grandchild: str
) -> None:
    log = tmp_path / "log"
    with ChildProcess(["bash", "-c", f"{grandchild} & echo started; wait"], log=log) as child:
        child.wait_for(lambda: "started" in child.output, timeout_s=20, what="start")
        # The shell's own copy becomes setsid, and setsid becomes sleep.
        wait_until(
            lambda: "sleep" in [process.name() for process in child.session()],
            timeout_s=20,
            what="sleep",
        )
        child.kill()
        assert [process.name() for process in child.session()] == ["sleep"]
    assert child.session() == []


def test_a_stopped_process_is_terminated_too(tmp_path: Path) -> None:
    with ChildProcess(["sleep", "1000"], log=tmp_path / "log") as child:
        child.pause()
    assert not child.running


def test_a_process_that_does_not_exit_in_time_is_reported(tmp_path: Path) -> None:
    with (
        ChildProcess(["sleep", "1000"], log=tmp_path / "log") as child,
        pytest.raises(NotInTime, match=r"did not exit within 0\.1 s"),
    ):
        child.wait(timeout_s=0.1)


def test_commands_come_from_the_environment_of_the_tests() -> None:
    python = Path(command("dragoman", "--help")[0])
    assert python.parent == Path(sys.executable).parent
    assert command("dragoman", "--help")[1:] == ["--help"]


def test_a_wait_for_a_condition_that_never_holds_is_bounded() -> None:
    with pytest.raises(NotInTime, match=r"rain: not within 0\.05 s"):
        wait_until(lambda: False, timeout_s=0.05, what="rain")


async def test_conditions_may_be_coroutines() -> None:
    async def seen() -> str:
        return "it"

    assert await eventually(seen, timeout_s=1, what="it") == "it"
    assert await eventually(lambda: 7, timeout_s=1, what="seven") == 7


def test_bounds_of_a_second_or_more_allow_for_a_slow_machine() -> None:
    assert (patient(0.05), patient(1), patient(20)) == (0.05, 3, 60)


def test_a_forked_process_has_imported_the_worker_before_it_starts() -> None:
    look = f"import sys; sys.exit({PRELOADED!r} not in sys.modules)"
    process = fork_server().Process(target=exec, args=(look,))
    process.start()
    process.join(patient(60))
    assert process.exitcode == 0
