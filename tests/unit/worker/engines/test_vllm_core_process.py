"""Tests of the guarded start of vLLM's engine process and of its failure report."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dragoman_worker.engines.vllm import core_process
from dragoman_worker.engines.vllm.core_process import exit_reason, guarded, read_report


class Core:
    @staticmethod
    def run_engine_core() -> str:
        return "vLLM's"


class CoreOfAnotherVersion: ...


def test_the_child_s_function_is_replaced_while_building_and_then_restored(tmp_path: Path) -> None:
    with guarded(Core, tmp_path / "end.json") as possible:
        assert possible
        replaced: Callable[..., object] = Core.run_engine_core
        assert replaced is core_process.run
        assert os.environ[core_process.REPORT_VARIABLE] == str(tmp_path / "end.json")
    assert Core.run_engine_core() == "vLLM's"
    assert core_process.REPORT_VARIABLE not in os.environ


def test_the_child_s_function_is_restored_after_a_failed_build(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="built"), guarded(Core, tmp_path / "end.json"):
        raise ValueError("not built")
    assert Core.run_engine_core() == "vLLM's"


def test_a_vllm_without_that_function_is_left_unchanged(tmp_path: Path) -> None:
    with guarded(CoreOfAnotherVersion, tmp_path / "end.json") as possible:
        assert not possible


def test_the_reason_of_a_failure_is_reported_to_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "end.json"
    monkeypatch.setenv(core_process.REPORT_VARIABLE, str(place))

    def failing(size: int) -> None:
        raise ValueError(f"no room for {size}")

    with pytest.raises(SystemExit) as exited:
        core_process._run_and_report(failing, (7,), {})
    assert exited.value.code == 1
    report = read_report(place)
    assert report is not None
    assert report.reason == "ValueError: no room for 7"
    assert "failing" in report.traceback
    assert exit_reason((), place) == "ValueError: no room for 7"


def test_the_exception_that_vllm_logs_is_the_reason_and_a_failed_start_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "end.json"
    monkeypatch.setenv(core_process.REPORT_VARIABLE, str(place))
    error = RuntimeError("worker failed")

    def record(message: str) -> logging.LogRecord:
        return logging.LogRecord("", 40, "", 1, message, None, (RuntimeError, error, None))

    assert core_process._report_what_is_logged(record("EngineCore encountered a fatal error."))
    assert exit_reason((), place) == "RuntimeError: worker failed"
    assert not core_process._report_what_is_logged(record("EngineCore failed to start."))


def test_the_reason_of_a_worker_process_stays_when_the_engine_process_fails_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "end.json"
    monkeypatch.setenv(core_process.REPORT_VARIABLE, str(place))
    generic = Exception(
        "WorkerProc initialization failed due to an exception in a background process. See stack "
        "trace for root cause."
    )
    core_process._report(generic)
    core_process._report(ValueError("no room"))
    core_process._report(generic)
    assert exit_reason((), place) == "ValueError: no room"


@pytest.mark.parametrize("content", [None, "", "{}", '"x"', "not json"])
def test_a_missing_or_broken_report_is_no_report(tmp_path: Path, content: str | None) -> None:
    place = tmp_path / "end.json"
    if content is not None:
        place.write_text(content)
    assert read_report(place) is None
    assert exit_reason((), place) == "it does not answer"


# --- matrix registers of the CPU ------------------------------------------------------------------


class WorkerProc:
    @staticmethod
    def worker_main(*given: object) -> None:
        ran.append(given)


ran: list[tuple[object, ...]] = []


@pytest.fixture
def worker_class(monkeypatch: pytest.MonkeyPatch) -> type:
    """Stand in for vLLM's modules; return the class whose function its worker processes run."""
    made = type("WorkerProc", (), dict(vars(WorkerProc)))
    executor, platforms = ModuleType("executor"), ModuleType("platforms")
    executor.WorkerProc = made  # type: ignore[attr-defined]
    platforms.current_platform = SimpleNamespace(is_cpu=lambda: True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, core_process._EXECUTOR, executor)
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    monkeypatch.setattr(core_process, "_request_amx", lambda: None)
    return made


def test_spawned_workers_on_a_cpu_ask_for_its_registers_and_run_as_vllm_does(
    worker_class: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(core_process.WORKER_METHOD, "spawn")
    core_process._start_workers_with_work()
    assert vars(worker_class)["worker_main"].__func__ is core_process.work
    # The spawned process imports vLLM afresh, with its own function.
    setattr(worker_class, "worker_main", staticmethod(WorkerProc.worker_main))  # noqa: B010
    core_process.work("rank 0")
    assert ran.pop() == ("rank 0",)


@pytest.mark.parametrize(("method", "cpu"), [("fork", True), ("spawn", False)])
def test_forked_workers_and_those_on_gpus_are_left_to_vllm(
    worker_class: type, monkeypatch: pytest.MonkeyPatch, method: str, cpu: bool
) -> None:
    monkeypatch.setenv(core_process.WORKER_METHOD, method)
    platform = SimpleNamespace(is_cpu=lambda: cpu)
    monkeypatch.setattr(sys.modules["vllm.platforms"], "current_platform", platform)
    core_process._start_workers_with_work()
    assert vars(worker_class)["worker_main"] is vars(WorkerProc)["worker_main"]
