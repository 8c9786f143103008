"""Tests of the systemd unit: it runs the worker that fills every GPU, and lets it drain."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import pytest

from dragoman_connections.settings import load_settings
from dragoman_worker.settings import WorkerSettings

_UNIT = Path(__file__).parents[3] / "deploy" / "systemd" / "dragoman-worker.service"


def _settings() -> WorkerSettings:
    return load_settings(WorkerSettings, None, {"engine.kind": "echo"})


@pytest.fixture(scope="module")
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's keys have cases
    unit.read_string(_UNIT.read_text(encoding="utf-8"))
    return unit["Service"]


def test_one_unit_runs_the_worker_of_the_whole_host(service: configparser.SectionProxy) -> None:
    program, command, option, _ = shlex.split(service["ExecStart"])
    assert Path(program).name == "dragoman-worker"
    assert (command, option) == ("run", "--config")
    assert _settings().engine.gpus == "all"


def test_a_stop_signals_the_supervisor_alone_and_waits_for_the_drain(
    service: configparser.SectionProxy,
) -> None:
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= _settings().shutdown.grace_s + 15


def test_invalid_settings_are_not_tried_again(service: configparser.SectionProxy) -> None:
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2"


def test_one_killed_process_does_not_stop_the_other_replicas(
    service: configparser.SectionProxy,
) -> None:
    assert service["OOMPolicy"] == "continue"


def test_compile_caches_are_kept_where_the_worker_may_write(
    service: configparser.SectionProxy,
) -> None:
    assert service["ProtectSystem"] == "strict"
    assert service["Environment"] == f"HOME=/var/lib/{service['StateDirectory']}"
