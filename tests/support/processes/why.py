"""The answer of `dragoman-worker why` for a worker under test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.processes.forked_command import run_forked
from support.processes.waiting import NotInTime, wait_until
from support.processes.worker_process import WorkerProcess


def named(worker: WorkerProcess) -> dict[str, Any]:
    """Run the command and return its JSON."""
    asked = run_forked("dragoman-worker", "why", "--json", "--set", f"http.port={worker.port}")
    assert asked.returncode == 0, asked.stderr
    answer: dict[str, Any] = json.loads(asked.stdout)
    return answer


def is_named(worker: WorkerProcess, cause: str, *, settle_s: float = 90) -> dict[str, Any]:
    """Wait until the metric names the cause, half a window, then run the command once."""
    judged: list[str] = []

    def reported() -> bool:
        lines = worker.get("/metrics")[1].splitlines()
        prefixes = ("dragoman_bottleneck{", "dragoman_load{")
        judged[:] = [line for line in lines if line.startswith(prefixes)]
        return any(f'cause="{cause}"' in line for line in judged)

    try:
        wait_until(reported, timeout_s=settle_s, what=cause)
    except NotInTime:
        pytest.fail(f"{cause} is not named: {judged}")
    answer = named(worker)
    assert answer["cause"] == cause, answer
    return answer
