"""A replica reports to its supervisor whether settings or its GPU refuse its start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.cli import run
from dragoman_worker.engines.vllm.start_failures import TooLittleMemory
from dragoman_worker.process.parent_link import ParentLink


class FakeLink:
    """The replica's end of the link; `reports` are the failures that it reported."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []

    def hold(self) -> None:
        pass

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

    monkeypatch.setattr(ParentLink, "adopt", lambda _: link)
    monkeypatch.setattr(run, "read_settings", lambda *_: None)
    monkeypatch.setattr(run, "_work", work)
    with pytest.raises(SystemExit) as exited:
        run.replica(0, tmp_path / "0.sock", 9)
    assert exited.value.code == 2
    [(reported, message)] = link.reports
    assert reported == kind
    assert str(error) in message or "vllm" in message
