"""How replicas are started, and what one reports when settings or its GPU refuse its start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.cli import run
from dragoman_worker.engines.vllm.start_failures import TooLittleMemory
from dragoman_worker.process import launcher
from dragoman_worker.process.exits import Exit
from dragoman_worker.process.parent_link import ParentLink
from dragoman_worker.settings import WorkerSettings


class FakeLink:
    """The replica's end of the link; `reports` are the failures that it reported."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []

    def failed(self, kind: str, message: str) -> None:
        self.reports.append((kind, message))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SettingsError("engine.model: none"), "settings"),
        (TooLittleMemory("engine.options.gpu_memory_utilization: taken"), "device"),
        (ModuleNotFoundError("No module named 'vllm'", name="vllm"), "settings"),
    ],
)
def test_a_refused_start_exits_with_2_and_reports_its_kind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, kind: str
) -> None:
    link = FakeLink()

    def work(*_: Any) -> None:
        raise error

    monkeypatch.setattr(ParentLink, "hold", lambda _: link)
    monkeypatch.setattr(run, "read_settings", lambda *_: None)
    monkeypatch.setattr(run, "_work", work)
    with pytest.raises(SystemExit) as exited:
        run.replica(0, tmp_path / "0.sock", 9)
    assert exited.value.code == 2
    [(reported, message)] = link.reports
    assert reported == kind
    assert str(error) in message or "vllm" in message


@pytest.mark.parametrize(
    ("engine", "forked"),
    [
        ({"kind": "vllm", "model": "some/model"}, True),
        ({"kind": "vllm", "model": "some/model", "patches": "off"}, False),
        ({"kind": "echo"}, False),
    ],
)
def test_replicas_are_forked_with_vllm_unless_it_is_to_stay_as_it_is(
    monkeypatch: pytest.MonkeyPatch, engine: dict[str, Any], forked: bool
) -> None:
    given: list[Any] = []

    def supervise(*_: Any, fork_server: Any, **others: Any) -> Exit:
        given.append(fork_server)
        return Exit(0, "")

    monkeypatch.setattr(launcher, "supervise", supervise)
    settings = WorkerSettings.model_validate({"engine": engine})
    run._supervise(settings, None, None)
    assert [each is not None for each in given] == [forked]
