"""Does a command end quietly by a signal that comes while Python still imports it?"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes.child_process import command

COMMANDS = ["dragoman", "dragoman-worker"]
AS_FROM_A_TERMINAL = (
    # Whoever runs the tests in the background ignores SIGINT, and what they start does too.
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execvp('sh', ['sh', '-c', sys.argv[1]])"
)


@pytest.fixture(autouse=True)
def signal_in_the_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found instead of typer, the first of what both import from outside the standard library."""
    lines = "import os; os.kill(os.getpid(), int(os.environ['NUMBER'])); os._exit(77)"
    (tmp_path / "typer.py").write_text(lines)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


def end_of(name: str, number: signal.Signals, before: str = "") -> tuple[int, str]:
    """How a command ended that was sent a signal then, and all it said."""
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
def test_a_signal_during_the_imports_ends_a_command_without_a_word(
    name: str, number: signal.Signals
) -> None:
    assert end_of(name, number) == (-number, ""), "which a shell tells as 130 or 143"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_shall_ignore_interrupts_does(name: str) -> None:
    assert end_of(name, signal.SIGINT, "trap '' INT;") == (77, "")
