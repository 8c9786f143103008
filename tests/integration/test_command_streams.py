"""Integration tests of commands without services, and with closed, full or narrow streams."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import Final

import pytest

from support.processes.child_process import command
from support.processes.forked_command import run_forked

COMMANDS: Final = [
    ("topics", "create"),
    ("topics", "show"),
    ("audit",),
    ("audit", "--json"),
    ("dead-letters", "list"),
    ("dead-letters", "show", "a"),
    ("dead-letters", "replay", "--all"),
    ("submit", "--to", "de", "Hello."),
    ("result", "a"),
    ("status", "a", "--json"),
    ("cancel", "a"),
    ("cancel", "--document", "a"),
    ("glossary", "list"),
    ("glossary", "show", "a"),
    ("glossary", "remove", "a"),
    ("memory", "show"),
    ("memory", "show", "--text", "a", "--json"),
    ("memory", "export"),
    ("memory", "clear"),
]
NOWHERE: Final = {
    "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "DRAGOMAN_REDIS__URL": "redis://127.0.0.1:1/0",
    "DRAGOMAN_CONNECT_TIMEOUT_S": "0.3",
    "COLUMNS": "40",
}


def shell(line: str) -> tuple[int, str, str]:
    """Run a line of bash without services; return status, stdout and stderr."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        env={**os.environ, **NOWHERE},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def worker(*arguments: str) -> str:
    return shlex.join(command("dragoman-worker", *arguments))


def dragoman(*arguments: str) -> str:
    return shlex.join(command("dragoman", *arguments))


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_without_services_prints_one_line_and_exits_with_one(
    arguments: tuple[str, ...],
) -> None:
    ended = run_forked("dragoman", *arguments, env={**os.environ, **NOWHERE})
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert re.search(r"Can't reach|could not be reached", ended.stderr)
    assert "127.0.0.1:1" in ended.stderr


def test_a_closed_stdin_is_reported() -> None:
    status, out, errors = shell(f"{dragoman('submit', '--to', 'de', '-')} <&-")
    assert (status, out) == (2, "")
    assert "stdin is closed" in errors


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "< /dev/null >&-"])
def test_closed_streams_stop_a_command_without_a_traceback(redirection: str) -> None:
    status, _, errors = shell(f"{dragoman('status', 'a')} {redirection}")
    assert status == 1
    assert "Traceback" not in errors
    assert "internal error" not in errors


def test_a_closed_pipe_and_a_full_disk_stop_a_command_without_a_traceback() -> None:
    _, _, errors = shell(f"{dragoman('--help')} | true")
    assert errors == ""
    status, _, errors = shell(f"{dragoman('--version')} > /dev/full")
    assert (status, errors.count("\n")) == (1, 1)
    assert "No space left" in errors


def test_a_full_stderr_costs_its_lines_and_neither_work_nor_status() -> None:
    assert shell(f"{dragoman('submit', '--nope')} 2> /dev/full")[0] == 2
    assert shell(f"{worker('check', '--set', 'nonsense=1')} 2> /dev/full")[0] == 2
    status, out, _ = shell(
        f"{sys.executable} -c 'import sys; from dragoman_connections.terminal import print_to; "
        'print_to(sys.stderr, "lost"); print_to(sys.stdout, "said")\' 2> /dev/full'
    )
    assert (status, out) == (0, "said\n")


def test_a_full_disk_stops_a_command_of_the_worker_with_one_line() -> None:
    status, _, errors = shell(f"{worker('profiles')} > /dev/full")
    assert (status, errors.count("\n")) == (1, 1)
    assert "No space left" in errors
