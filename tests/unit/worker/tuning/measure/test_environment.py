"""Environment of a result: the machine, the engine version and the model's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman_worker.settings import EngineSettings
from dragoman_worker.tuning.measure import results as module
from dragoman_worker.tuning.measure.results import environment


def engine(folder: Path) -> EngineSettings:
    return EngineSettings(kind="vllm", model=str(folder))


def test_a_file_of_the_model_that_changes_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"abc")
    first = environment(engine(tmp_path))
    assert environment(engine(tmp_path)) == first
    (tmp_path / "model.safetensors").write_bytes(b"abcd")
    assert environment(engine(tmp_path)) != first


def test_a_profile_file_or_an_echo_table_that_changes_makes_other_results(tmp_path: Path) -> None:
    text = tmp_path / "file"
    text.write_text("one")
    for settings in (
        EngineSettings.model_validate({"kind": "echo", "echo": {"mode": "table", "table": text}}),
        EngineSettings(kind="echo").model_copy(update={"profile_file": text}),
    ):
        text.write_text("one")
        first = environment(settings)
        assert environment(settings) == first
        text.write_text("two")
        assert environment(settings) != first


def test_a_model_that_is_not_a_folder_has_no_files(tmp_path: Path) -> None:
    assert environment(engine(tmp_path / "none"))["model"] == []
    assert environment(EngineSettings(kind="echo"))["model"] == []


@pytest.mark.parametrize(
    ("name", "replacement"),
    [("_version", lambda _: "9.9.9"), ("_gpu_names", lambda: ["Model: Other"])],
)
def test_another_engine_version_or_gpu_is_another_environment(
    name: str, replacement: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = environment(engine(tmp_path))
    monkeypatch.setattr(module, name, replacement)
    assert environment(engine(tmp_path)) != first


def test_gpus_are_named_by_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "0000:01:00.0" / "information"
    place.parent.mkdir()
    place.write_text("Model: \t\t NVIDIA L4\nIRQ:   \t\t 90\n")
    monkeypatch.setattr(module, "_DRIVER", tmp_path)
    assert environment(EngineSettings(kind="echo"))["gpus"] == ["Model: \t\t NVIDIA L4"]
