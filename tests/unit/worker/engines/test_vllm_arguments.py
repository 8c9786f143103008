"""Tests of vLLM's default arguments, the refusal of invalid ones, and the limits built."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm.arguments import (
    Device,
    check_options,
    defaults,
    engine_arguments,
    model_name,
    prepare_device,
    prepare_environment,
    real_limits,
    require_vllm,
    resolve_model,
)
from dragoman_worker.settings import EngineSettings

GIB = 1024**3
CPU = Device(cpu=True, memory_bytes=24 * GIB, name="cpu")
H200 = Device(cpu=False, memory_bytes=140 * GIB, name="NVIDIA H200")
A100 = Device(cpu=False, memory_bytes=80 * GIB, name="NVIDIA A100-SXM4-80GB")
L4 = Device(cpu=False, memory_bytes=23 * GIB, name="NVIDIA L4")


@dataclass
class Arguments:
    """A dataclass with many fields, like AsyncEngineArgs."""

    model: str = ""
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float = 0.9
    generation_config: str = "auto"
    hf_overrides: dict[str, Any] = field(default_factory=dict)
    cudagraph_capture_sizes: list[int] | None = None
    enforce_eager: bool = False
    speculative_config: dict[str, Any] | None = None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def settings(model: Path | str, **options: Any) -> EngineSettings:
    return EngineSettings(model=str(model), options=options)


@pytest.mark.parametrize(
    ("device", "seqs", "tokens"),
    [(CPU, 64, 2_048), (H200, 1_024, 16_384), (A100, 256, 8_192), (L4, 256, 8_192)],
)
def test_the_batch_fits_the_device(device: Device, seqs: int, tokens: int) -> None:
    values = defaults(device, {})
    assert (values["max_num_seqs"], values["max_num_batched_tokens"]) == (seqs, tokens)
    assert values.get("enforce_eager", False) is device.cpu


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_num_seqs": 4_096}, {"max_num_batched_tokens": 8_192}),
        ({"max_num_seqs": 9_000}, {"max_num_batched_tokens": 9_000}),
        ({"max_num_batched_tokens": 100}, {"max_num_seqs": 100}),
    ],
)
def test_the_default_of_one_batch_limit_follows_the_given_other_one(
    given: dict[str, int], expected: dict[str, int]
) -> None:
    values = defaults(L4, given)
    assert expected.items() <= values.items()


def test_options_override_our_defaults_and_these_override_vllm_s(folder: Path) -> None:
    made = engine_arguments(
        settings(folder, max_num_seqs=3, hf_overrides={"a": 1}), Arguments, "0.32.0", CPU
    )
    assert (made.model, made.max_num_seqs, made.hf_overrides) == (str(folder), 3, {"a": 1})
    assert made.max_num_batched_tokens == 2_048
    assert made.generation_config == "vllm"


def test_the_vision_parts_of_a_model_are_left_out_unless_the_settings_want_them() -> None:
    assert defaults(L4, {})["language_model_only"] is True


def test_an_unknown_option_is_refused_with_the_nearest_one_that_exists() -> None:
    with pytest.raises(SettingsError) as refused:
        check_options({"max_num_seq": 3}, Arguments, "0.32.0")
    assert str(refused.value) == (
        "engine.options.max_num_seq: vLLM 0.32.0 has no such option (did you mean max_num_seqs?)"
    )
    with pytest.raises(SettingsError, match=r"engine\.options\.xyz: .* no such option$"):
        check_options({"xyz": 3}, Arguments, "0.32.0")


def test_the_model_is_refused_as_an_engine_option() -> None:
    with pytest.raises(SettingsError, match=r"engine\.options\.model: .*engine\.model"):
        check_options({"model": "a/b"}, Arguments, "0.32.0")


@pytest.mark.parametrize("missing", ["/no/such/model", "./no-such-model", "no-such-model", "a/b/c"])
def test_a_missing_folder_is_named(missing: str) -> None:
    with pytest.raises(SettingsError, match=f"engine.model: there is no folder {missing}"):
        resolve_model(missing)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"engine\.model: .*config\.json"):
        resolve_model(str(tmp_path))


def test_a_hub_name_is_passed_on_unchanged(folder: Path) -> None:
    assert resolve_model("tencent/HY-MT1.5-1.8B") == "tencent/HY-MT1.5-1.8B"
    assert resolve_model(str(folder)) == str(folder)


def test_results_name_the_model_without_its_parent_folders(folder: Path) -> None:
    assert model_name(settings(folder)) == folder.name
    assert model_name(settings("tencent/HY-MT1.5-1.8B")) == "tencent/HY-MT1.5-1.8B"
    assert model_name(settings(folder, served_model_name="mt")) == "mt"
    assert model_name(settings(folder, served_model_name=["first", "second"])) == "first"


def test_vllm_sends_no_statistics_and_contacts_no_hub_for_a_local_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"VLLM_NO_USAGE_STATS": "0"})
    prepare_environment(settings("tencent/HY-MT1.5-1.8B"), verbose=False)
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert "HF_HUB_OFFLINE" not in os.environ
    prepare_environment(settings(folder), verbose=True)
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"
    assert os.environ["VLLM_LOGGING_LEVEL"] == "WARNING"


@pytest.mark.parametrize(
    ("device", "options", "given", "expected"),
    [
        (CPU, {}, {}, "1"),
        (CPU, {}, {"VLLM_CPU_KVCACHE_SPACE": "7"}, "7"),
        (CPU, {"kv_cache_memory_bytes": 1}, {}, None),
        (H200, {}, {}, None),
    ],
)
def test_a_cpus_kv_cache_gets_one_gib_unless_a_size_is_given(
    device: Device,
    options: dict[str, Any],
    given: dict[str, str],
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", dict(given))
    prepare_device(device, options)
    assert os.environ.get("VLLM_CPU_KVCACHE_SPACE") == expected


def test_a_machine_without_vllm_gets_one_line_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"engine\.kind: vLLM is not installed") as refused:
        require_vllm()
    assert "\n" not in str(refused.value)


# --- CUDA graphs for prefills in groups -----------------------------------------------------------


def graphs(folder: Path, device: Device, share: float, **options: Any) -> list[int] | None:
    given = settings(folder, **options).model_copy(update={"prefill_share": share})
    made = engine_arguments(given, Arguments, "0.26.0", device)
    sizes: list[int] | None = made.cudagraph_capture_sizes
    return sizes


def test_with_a_prefill_share_graphs_reach_all_sequences(folder: Path) -> None:
    assert (graphs(folder, H200, 0.1) or [0])[-1] == 1_024
    assert (graphs(folder, H200, 0.1, max_num_seqs=768) or [0])[-1] == 768


@pytest.mark.parametrize(
    ("device", "share", "options"),
    [
        (H200, 0.0, {}),
        (CPU, 0.1, {"max_num_seqs": 1_024}),
        (H200, 0.1, {"max_num_seqs": 512}),
        (H200, 0.1, {"enforce_eager": True}),
    ],
)
def test_otherwise_the_sizes_of_graphs_are_left_to_vllm(
    folder: Path, device: Device, share: float, options: dict[str, Any]
) -> None:
    assert graphs(folder, device, share, **options) is None


def test_with_patches_off_nothing_is_grouped_and_the_graphs_are_vllms(folder: Path) -> None:
    off = settings(folder).model_copy(update={"patches": "off"})
    assert off.prefill_share > off.grouped_share == 0
    assert engine_arguments(off, Arguments, "0.26.0", H200).cudagraph_capture_sizes is None


def test_given_sizes_of_graphs_are_kept(folder: Path) -> None:
    assert graphs(folder, H200, 0.1, cudagraph_capture_sizes=[1, 2]) == [1, 2]


# --- limits ---------------------------------------------------------------------------------------


def built(ranks: int, kv_cache_tokens: int | None) -> Any:
    """vLLM's configuration once its engines run: blocks are summed, all else is per rank."""
    return SimpleNamespace(
        parallel_config=SimpleNamespace(world_size=2, data_parallel_size=ranks),
        cache_config=SimpleNamespace(
            block_size=16, num_gpu_blocks=1_000 * ranks, kv_cache_size_tokens=kv_cache_tokens
        ),
        scheduler_config=SimpleNamespace(max_num_seqs=256, max_num_batched_tokens=8_192),
        model_config=SimpleNamespace(max_model_len=4_096),
    )


@pytest.mark.parametrize("kv_cache_tokens", [16_000, None])
def test_ranks_of_data_parallelism_add_up(kv_cache_tokens: int | None) -> None:
    one = real_limits(built(1, kv_cache_tokens), on_cpu=False)
    four = real_limits(built(4, kv_cache_tokens), on_cpu=False)
    assert (one.max_num_seqs, one.kv_cache_tokens, one.devices) == (256, 16_000, 2)
    assert (four.max_num_seqs, four.kv_cache_tokens, four.devices) == (1_024, 64_000, 8)
    assert (four.max_num_batched_tokens, four.max_model_len) == (8_192, 4_096)
