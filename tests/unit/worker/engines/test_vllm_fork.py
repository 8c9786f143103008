"""The standby process becomes the engine process, and never outlives its replica."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.engines.vllm.patches import fork
from support.processes import standby_parent
from support.processes.supervised_run import SOON_S, gone

Begin = Callable[[str], tuple[subprocess.Popen[str], dict[str, Any]]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start standby_parent.py and return it with its report."""
    started: list[subprocess.Popen[str]] = []

    def start(what: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        made = subprocess.Popen(
            [sys.executable, standby_parent.__file__, str(tmp_path), what],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        started.append(made)
        assert made.stdout is not None
        return made, json.loads(made.stdout.readline())

    yield start
    for each in started:
        each.kill()
        each.communicate(timeout=SOON_S)


def test_the_first_engine_process_is_the_standby_process_with_the_present_environment(
    begin: Begin,
) -> None:
    _, report = begin("use")
    first, second = report["started"]
    assert second == {}, "a standby process is of use once"
    assert first["pid"] == first["session"] == report["standby"]
    assert first["parent"] == report["own"]
    assert (first["exitcode"], first["threads"]) == (3, 1)
    assert (first["variable"], first["method"]) == ("yes", "fork")


def test_a_waiting_standby_process_exits_when_its_replica_is_killed(begin: Begin) -> None:
    parent, report = begin("wait")
    parent.kill()
    assert gone(report["standby"], within_s=SOON_S)


def test_without_a_standby_process_vllm_starts_its_own_way() -> None:
    module = SimpleNamespace(get_mp_context=lambda: "its own")
    with fork.used(module):
        assert module.get_mp_context() == "its own"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OMP_PLACES", "{0}"), ("GOMP_CPU_AFFINITY", "0"), ("KMP_AFFINITY", "explicit,proclist=[0]")],
)
def test_a_forked_worker_runs_on_the_cores_that_vllm_chose(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    bound: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: bound.append(cores))
    monkeypatch.setenv(variable, value)
    fork._bind({variable: value})
    assert bound == [], "OpenMP has read it at its import"
    fork._bind({})
    assert bound == [{0}]
