"""Tests of the number of replicas that `auto` means, and of each replica's share of the GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.engines.sizing import GPU_SHARE, Machine, model_size, share_out
from dragoman_worker.settings import EngineSettings, WorkerSettings

GIB = 1024**3
H200 = Machine(gpu=True, gpu_bytes=140 * GIB, cores=16)
CPUS = Machine(gpu=False, gpu_bytes=None, cores=16)
MEMORY = "engine.options.gpu_memory_utilization"
SHAPES = {
    "0.6b": {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28},
    "1.7b": {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28},
    "8b": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36},
}


def model(folder: Path, shape: str, **more: Any) -> str:
    heads = 32 if shape == "8b" else 16
    config = {
        **SHAPES[shape],
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 32_000,
        "torch_dtype": "bfloat16",
        **more,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def engine(place: str, replicas: object = "auto", **options: Any) -> EngineSettings:
    return EngineSettings.model_validate(
        {"model": place, "replicas": replicas, "options": options, "kind": "vllm"}
    )


@pytest.mark.parametrize(("shape", "count"), [("0.6b", 4), ("1.7b", 3), ("8b", 1)])
def test_auto_follows_the_measured_table(tmp_path: Path, shape: str, count: int) -> None:
    share = share_out(engine(model(tmp_path, shape)), lambda: H200)
    assert share.count == count
    assert share.reason.startswith(f"auto: {count}, because")
    expected = {MEMORY: round(GPU_SHARE / count, 3)} if count > 1 else {}
    assert share.options == expected


def test_auto_is_limited_by_the_gpu_memory(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    small = Machine(gpu=True, gpu_bytes=16 * GIB, cores=16)
    assert share_out(engine(place), lambda: small).count == 2
    assert share_out(engine(place, kv_cache_memory_bytes=9 * GIB), lambda: small).count == 1


def test_auto_is_limited_by_the_cpu_cores(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    assert share_out(engine(place), lambda: Machine(True, 140 * GIB, 4)).count == 3


def test_auto_is_one_without_a_gpu_or_a_known_model_size(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    assert share_out(engine(place), lambda: CPUS).count == 1
    assert share_out(engine("some/model"), lambda: H200).count == 1
    assert share_out(engine(place, tensor_parallel_size=2), lambda: H200).count == 1
    echo = EngineSettings(kind="echo", replicas="auto")
    assert share_out(echo, lambda: H200).count == 1


def test_a_given_number_is_kept_and_only_divides_the_gpu_memory(tmp_path: Path) -> None:
    place = model(tmp_path, "8b")
    assert share_out(engine(place, 3), lambda: H200).options == {MEMORY: 0.3}
    assert share_out(engine(place, 3), lambda: CPUS).options == {}
    given = share_out(engine(place, 3, gpu_memory_utilization=0.2), lambda: H200)
    assert (given.count, given.options) == (3, {})


def test_one_replica_does_not_inspect_the_machine() -> None:
    def inspected() -> Machine:
        raise AssertionError("inspected the machine")

    assert share_out(EngineSettings(kind="echo"), inspected).count == 1


def test_more_memory_than_the_gpu_has_is_refused_by_name(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    with pytest.raises(SettingsError, match=r"gpu_memory_utilization: 0\.6 .*at most 0\.50"):
        share_out(engine(place, 2, gpu_memory_utilization=0.6), lambda: H200)
    with pytest.raises(SettingsError, match="kv_cache_memory_bytes"):
        share_out(engine(place, 4, kv_cache_memory_bytes=40 * GIB), lambda: H200)


@given(
    replicas=st.integers(2, 64),
    share=st.floats(0.01, 1.0),
)
def test_no_accepted_share_exceeds_the_gpu(replicas: int, share: float) -> None:
    settings = engine("some/model", replicas, gpu_memory_utilization=share)
    try:
        found = share_out(settings, lambda: H200)
    except SettingsError:
        assert replicas * share > 1
    else:
        assert found.count * share <= 1


@pytest.mark.parametrize("name", ["gpu_memory_utilization", "kv_cache_memory_bytes"])
@pytest.mark.parametrize("invalid", [0, -1, "abc", True, float("nan")])
@pytest.mark.parametrize("replicas", ["auto", 3])
def test_memory_that_is_no_number_above_0_is_refused_by_name(
    tmp_path: Path, name: str, invalid: object, replicas: object
) -> None:
    place = model(tmp_path, "0.6b")
    with pytest.raises(SettingsError, match=rf"engine\.options\.{name}: give a number above 0"):
        share_out(engine(place, replicas, **{name: invalid}), lambda: H200)


def test_the_size_of_a_model_comes_from_its_files_and_its_config(tmp_path: Path) -> None:
    place = model(tmp_path, "8b")
    size = model_size(engine(place))
    assert size is not None
    assert size.parameters == pytest.approx(7.2e9, rel=0.05)  # Qwen3's 8.2B has a larger vocabulary
    assert size.weight_bytes == pytest.approx(2 * size.parameters)
    fp8 = model_size(engine(place, quantization="fp8"))
    assert fp8 is not None
    assert fp8.weight_bytes == pytest.approx(size.parameters)
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))
    (tmp_path / "consolidated.safetensors").write_bytes(bytes(1000))
    on_disk = model_size(engine(place))
    assert on_disk is not None
    assert on_disk.weight_bytes == 1000


@pytest.mark.parametrize("invalid", [0, 65, -1, "many", 1.5, True])
def test_an_invalid_number_of_replicas_is_refused_with_the_valid_range(invalid: object) -> None:
    with pytest.raises(
        SettingsError, match=r"^engine.replicas: give a number .* 1 to 64, or 'auto'"
    ):
        load_settings(WorkerSettings, None, {"engine.kind": "echo", "engine.replicas": invalid})


@pytest.mark.parametrize(("given", "value"), [("auto", "auto"), ("3", 3), (64, 64)])
def test_the_number_of_replicas_may_be_given_as_text(given: object, value: object) -> None:
    settings = load_settings(
        WorkerSettings, None, {"engine.kind": "echo", "engine.replicas": given}
    )
    assert settings.engine.replicas == value
