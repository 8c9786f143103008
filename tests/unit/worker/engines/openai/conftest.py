"""No pauses between two requests to a server."""

from __future__ import annotations

import pytest
from tenacity import wait_fixed

from dragoman_worker.engines.openai import opening, watch
from dragoman_worker.engines.openai import server as server_module


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_WATCH_S", 0.02)
    monkeypatch.setattr(opening, "_PAUSES", wait_fixed(0.001))
    for module in (server_module, watch):
        monkeypatch.setattr(module, "BACKOFF", wait_fixed(0.001))
