"""Identity of a model: what makes another one, and what does not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.engines.vllm.identity import engine_identity
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


def test_other_weights_of_the_same_size_and_time_are_another_identity(model: Path) -> None:
    weights, before = model / "model.safetensors", identity(model)
    time = weights.stat().st_mtime_ns
    weights.write_text(weights.name.upper())
    os.utime(weights, ns=(time, time))
    assert identity(model) != before


def test_a_copy_of_the_model_made_at_another_time_is_the_same_identity(
    model: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere" / "under-another-name"
    copy.mkdir(parents=True)
    for name in ("tokenizer.json", "README.md", "model.safetensors", "config.json"):
        (copy / name).write_bytes((model / name).read_bytes())
        os.utime(copy / name, ns=(1, 1))
    assert identity(copy) == identity(model)


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


def test_dummy_weights_are_another_identity(model: Path) -> None:
    assert identity(model, load_format="dummy") != identity(model)


@pytest.mark.parametrize(
    "options",
    [
        lambda folder: {"tokenizer": folder},
        lambda folder: {"speculative_config": {"model": folder, "num_speculative_tokens": 3}},
    ],
)
def test_another_draft_model_or_tokenizer_is_another_identity_wherever_it_lies(
    model: Path, tmp_path: Path, options: Callable[[str], dict[str, Any]]
) -> None:
    for name, held in (("first", "a"), ("second", "b"), ("third", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(held)
    first, second, third = (
        identity(model, **options(str(tmp_path / name))) for name in ("first", "second", "third")
    )
    assert first == third != second


def test_a_model_of_the_hub_is_known_by_the_files_in_the_cache(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = SimpleNamespace(snapshot_download=lambda *_args, **_options: str(model))
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert identity(Path("some-team/some-model")) == identity(model)


def test_a_model_whose_files_are_not_found_is_another_one_at_each_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert identity(Path("some-team/some-model")) != identity(Path("some-team/some-model"))


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
