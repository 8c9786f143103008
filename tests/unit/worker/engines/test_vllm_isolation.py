"""Tests of the guarded start of vLLM's engine process, what it changes, and its failure report."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dragoman_worker.engines.vllm.core_process import exit_reason
from dragoman_worker.engines.vllm.patches import isolation
from dragoman_worker.engines.vllm.patches.isolation import extend, guarded, read_report
from dragoman_worker.engines.vllm.patches.table import ISOLATION, WHOLE_OUTPUTS, ChosenPatches


class Core:
    @staticmethod
    def run_engine_core() -> str:
        return "vLLM's"


CHOSEN = ChosenPatches(frozenset({ISOLATION, WHOLE_OUTPUTS}))


def test_the_child_s_function_is_replaced_while_building_and_then_restored(tmp_path: Path) -> None:
    with guarded(Core, tmp_path / "end.json", CHOSEN):
        replaced: Callable[..., object] = Core.run_engine_core
        assert replaced is isolation.run
        assert os.environ[isolation.REPORT_VARIABLE] == str(tmp_path / "end.json")
        assert {*os.environ[isolation.PATCHES_VARIABLE].split()} == {ISOLATION, WHOLE_OUTPUTS}
    assert Core.run_engine_core() == "vLLM's"
    assert not {isolation.REPORT_VARIABLE, isolation.PATCHES_VARIABLE} & os.environ.keys()


def test_the_child_s_function_is_restored_after_a_failed_build(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="built"), guarded(Core, tmp_path / "end.json", CHOSEN):
        raise ValueError("not built")
    assert Core.run_engine_core() == "vLLM's"


def test_a_vllm_that_cannot_be_isolated_is_left_unchanged(tmp_path: Path) -> None:
    with guarded(SimpleNamespace, tmp_path / "end.json", ChosenPatches(frozenset())):
        assert not hasattr(SimpleNamespace, "run_engine_core")


def test_the_reason_of_a_failure_is_reported_to_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "end.json"
    monkeypatch.setenv(isolation.REPORT_VARIABLE, str(place))

    def failing(size: int) -> None:
        raise ValueError(f"no room for {size}")

    with pytest.raises(SystemExit) as exited:
        isolation._run_and_report(failing, (7,), {})
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
    monkeypatch.setenv(isolation.REPORT_VARIABLE, str(place))
    error = RuntimeError("worker failed")

    def record(message: str) -> logging.LogRecord:
        return logging.LogRecord("", 40, "", 1, message, None, (RuntimeError, error, None))

    assert isolation._report_what_is_logged(record("EngineCore encountered a fatal error."))
    assert exit_reason((), place) == "RuntimeError: worker failed"
    assert not isolation._report_what_is_logged(record("EngineCore failed to start."))


def test_the_reason_of_a_worker_process_stays_when_the_engine_process_fails_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "end.json"
    monkeypatch.setenv(isolation.REPORT_VARIABLE, str(place))
    generic = Exception(
        "WorkerProc initialization failed due to an exception in a background process. See stack "
        "trace for root cause."
    )
    isolation._report(generic)
    isolation._report(ValueError("no room"))
    isolation._report(generic)
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
    monkeypatch.setitem(sys.modules, isolation._EXECUTOR, executor)
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    monkeypatch.setattr(isolation, "_request_amx", lambda: None)
    return made


def test_spawned_workers_on_a_cpu_ask_for_its_registers_and_run_as_vllm_does(
    worker_class: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(isolation.WORKER_METHOD, "spawn")
    isolation._start_workers_with_work()
    assert vars(worker_class)["worker_main"].__func__ is isolation.work
    # The spawned process imports vLLM afresh, with its own function.
    setattr(worker_class, "worker_main", staticmethod(WorkerProc.worker_main))  # noqa: B010
    isolation.work("rank 0")
    assert ran.pop() == ("rank 0",)


@pytest.mark.parametrize(("method", "cpu"), [("fork", True), ("spawn", False)])
def test_forked_workers_and_those_on_gpus_are_left_to_vllm(
    worker_class: type, monkeypatch: pytest.MonkeyPatch, method: str, cpu: bool
) -> None:
    monkeypatch.setenv(isolation.WORKER_METHOD, method)
    platform = SimpleNamespace(is_cpu=lambda: cpu)
    monkeypatch.setattr(sys.modules["vllm.platforms"], "current_platform", platform)
    isolation._start_workers_with_work()
    assert vars(worker_class)["worker_main"] is vars(WorkerProc)["worker_main"]


# --- scheduler ------------------------------------------------------------------------------------


class Scheduler:
    """The scheduler that vLLM chooses."""


class First(Scheduler):
    """What the first extension makes of it."""


def test_extensions_of_the_scheduler_that_vllm_chooses_add_up() -> None:
    class Config:
        def get_scheduler_cls(self) -> type:
            return Scheduler

    extend(Config, lambda chosen: First if chosen is Scheduler else chosen)
    extend(Config, lambda chosen: type("Second", (chosen,), {}))
    assert [each.__name__ for each in Config().get_scheduler_cls().__mro__[:3]] == [
        "Second",
        "First",
        "Scheduler",
    ]
