"""Identity of a model: what makes another one, and what does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman_worker.engines.vllm.identity import engine_identity, files_state
from dragoman_worker.settings import EngineSettings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        (folder / name).write_text(name)
    return folder


def identity(model: Path, **options: Any) -> str:
    return engine_identity(EngineSettings(kind="vllm", model=str(model), options=options))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_another_file_of_the_model_is_another_identity(model: Path, name: str) -> None:
    before = identity(model)
    (model / name).write_text("changed")
    assert identity(model) != before


def test_same_size_at_another_time_is_another_identity(model: Path) -> None:
    before = identity(model)
    os.utime(model / "model.safetensors", ns=(1, 1))
    assert identity(model) != before


def test_new_readme_is_the_same_identity(model: Path) -> None:
    before = identity(model)
    (model / "README.md").write_text("changed")
    assert identity(model) == before


def test_same_model_by_another_path_is_the_same_identity(model: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(model)
    assert identity(link) == identity(model)


@pytest.mark.parametrize(
    "options", [{"quantization": "fp8"}, {"dtype": "float16"}, {"an_option_of_tomorrow": 1}]
)
def test_option_that_may_change_answers_is_another_identity(
    model: Path, options: dict[str, Any]
) -> None:
    assert identity(model, **options) != identity(model)


def test_option_of_speed_alone_is_the_same_identity(model: Path) -> None:
    assert identity(model, max_num_seqs=8, gpu_memory_utilization=0.5) == identity(model)


def test_state_of_a_single_file_is_that_file(model: Path) -> None:
    assert [state[0] for state in files_state(model / "config.json")] == ["config.json"]


def test_retrained_adapter_of_a_profile_is_another_identity(model: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (adapter / name).write_text("{}")
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "chat"\nadapter = "adapter"\n')
    settings = EngineSettings(kind="vllm", model=str(model), profile_file=profile)
    before = engine_identity(settings)
    assert before != identity(model)
    (adapter / "adapter_model.safetensors").write_text("retrained")
    assert engine_identity(settings) != before
