"""Unit tests of the settings that the demo writes for its worker."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.settings import load_settings
from dragoman_demo.worker_child import DemoWorker, EngineKind, to_toml
from dragoman_worker.settings import WorkerSettings

_NAMES = st.text("abcdefghij_", min_size=1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = _TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1)


@given(
    st.recursive(_VALUES, lambda inner: st.dictionaries(_NAMES, inner)).filter(
        lambda value: isinstance(value, dict)
    )
)
def test_settings_written_as_toml_are_read_back(settings: dict[str, object]) -> None:
    assert tomllib.loads(to_toml(settings)) == settings


@pytest.mark.parametrize("engine", list(EngineKind))
def test_the_worker_accepts_the_settings_of_the_demo(engine: EngineKind, tmp_path: Path) -> None:
    worker = DemoWorker(
        engine, bootstrap="127.0.0.1:1", redis_url="redis://127.0.0.1:2/0", folder=tmp_path
    )
    config = tmp_path / "dragoman.toml"
    config.write_text(to_toml(worker.settings), encoding="utf-8")
    settings = load_settings(WorkerSettings, config)
    assert settings.kafka.bootstrap_servers == "127.0.0.1:1"
    assert settings.redis.url == "redis://127.0.0.1:2/0"
    assert settings.engine.kind == engine.value
