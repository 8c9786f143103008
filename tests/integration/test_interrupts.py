"""Integration tests of signals that arrive while a command is still importing modules."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes.child_process import command

COMMANDS = ["dragoman", "dragoman-worker", "dragoman-demo"]
AS_FROM_A_TERMINAL = (
    # A shell starts background jobs with SIGINT ignored, and their children inherit that.
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execvp('sh', ['sh', '-c', sys.argv[1]])"
)


@pytest.fixture(autouse=True)
def signal_in_the_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a fake typer, the first third-party import of all commands, that sends a signal."""
    lines = "import os; os.kill(os.getpid(), int(os.environ['NUMBER'])); os._exit(77)"
    (tmp_path / "typer.py").write_text(lines)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


def end_of(name: str, number: signal.Signals, before: str = "") -> tuple[int, str]:
    """Run a command that gets a signal during its imports; return status and output."""
    shell = f"{before} exec {shlex.join(command(name, 'run'))}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", AS_FROM_A_TERMINAL, shell],
        env={**os.environ, "NUMBER": str(int(number))},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_during_the_imports_terminates_a_command_without_output(
    name: str, number: signal.Signals
) -> None:
    assert end_of(name, number) == (-number, ""), "a shell reports 130 or 143"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_started_with_interrupts_ignored_ignores_them(name: str) -> None:
    assert end_of(name, signal.SIGINT, "trap '' INT;") == (77, "")
