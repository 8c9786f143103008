"""What does `dragoman-worker why` say of a worker under test?"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from support.processes.child_process import command
from support.processes.waiting import NotInTime, wait_until
from support.processes.worker_process import WorkerProcess


def named(worker: WorkerProcess) -> dict[str, Any]:
    """What the command says, as a person would ask it."""
    argv = command("dragoman-worker", "why", "--json", "--set", f"http.port={worker.port}")
    asked = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert asked.returncode == 0, asked.stderr
    told: dict[str, Any] = json.loads(asked.stdout)
    return told


def is_named(worker: WorkerProcess, cause: str, *, settle_s: float = 30) -> dict[str, Any]:
    """Wait until the metric names it, which takes half a window, and ask the command once."""
    judged: list[str] = []

    def told() -> bool:
        lines = worker.get("/metrics")[1].splitlines()
        prefixes = ("dragoman_bottleneck{", "dragoman_load{")
        judged[:] = [line for line in lines if line.startswith(prefixes)]
        return any(f'cause="{cause}"' in line for line in judged)

    try:
        wait_until(told, timeout_s=settle_s, what=cause)
    except NotInTime:
        pytest.fail(f"{cause} is not named: {judged}")
    said = named(worker)
    assert said["cause"] == cause, said
    return said
