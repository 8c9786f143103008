"""Tests of the number of replicas that `auto` means, and of each replica's share of the GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.engines.gpu import Gpu
from dragoman_worker.engines.machine import Machine
from dragoman_worker.engines.model_size import model_size
from dragoman_worker.engines.sizing import GPU_SHARE, Share, first_places, share_out
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import EngineSettings, WorkerSettings

GIB = 1024**3
CPUS = Machine((), cores=16)
MEMORY = "engine.options.gpu_memory_utilization"
KV_BYTES = "engine.options.kv_cache_memory_bytes"
SHAPES = {
    "0.6b": {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28},
    "1.7b": {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28},
    "3b": {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 24},
    "4b": {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36},
    "8b": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36},
}


def gpus(count: int, gib: int = 140, cores: int = 16) -> Machine:
    return Machine(tuple(Gpu(str(n), f"GPU-{n}", gib * GIB) for n in range(count)), cores * count)


H200 = gpus(1)


def model(folder: Path, shape: str, **more: Any) -> str:
    heads = 32 if shape in {"3b", "4b", "8b"} else 16
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


@pytest.mark.parametrize(
    ("shape", "count"), [("0.6b", 4), ("1.7b", 3), ("3b", 2), ("4b", 1), ("8b", 1)]
)
def test_auto_follows_the_measured_table(tmp_path: Path, shape: str, count: int) -> None:
    share = share_out(engine(model(tmp_path, shape)), lambda: H200)
    assert share.count == count
    assert share.reason.startswith(f"auto: {count}, because")
    assert len(share.places) == count
    for place in share.places:
        assert place.settings.get(MEMORY) == (round(GPU_SHARE / count, 3) if count > 1 else None)
        assert not place.measures_memory


def test_auto_is_limited_by_the_gpu_memory(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    small = gpus(1, 16)
    assert share_out(engine(place), lambda: small).count == 2
    assert share_out(engine(place, kv_cache_memory_bytes=9 * GIB), lambda: small).count == 1


def test_auto_is_limited_by_the_cpu_cores(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    assert share_out(engine(place), lambda: gpus(1, cores=4)).count == 3


def test_auto_is_one_without_a_gpu_or_a_known_model_size(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    assert share_out(engine(place), lambda: CPUS).count == 1
    assert share_out(engine("some/model"), lambda: H200).count == 1
    assert share_out(engine(place, tensor_parallel_size=2), lambda: gpus(2)).count == 1
    echo = EngineSettings(kind="echo", replicas="auto")
    assert share_out(echo, lambda: H200).count == 1


def test_a_given_number_is_kept_and_only_divides_the_gpu_memory(tmp_path: Path) -> None:
    place = model(tmp_path, "8b")
    three = share_out(engine(place, 3), lambda: H200)
    assert (three.count, len(three.places)) == (3, 3)
    assert three.places[0].settings[MEMORY] == 0.3
    assert share_out(engine(place, 3), lambda: CPUS).places == (Place(),) * 3
    given = share_out(engine(place, 3, gpu_memory_utilization=0.2), lambda: H200)
    assert given.count == 3
    assert MEMORY not in given.places[0].settings
    assert given.places[0].settings[KV_BYTES] < 0.2 * 140 * GIB


def test_engines_on_one_gpu_get_their_kv_cache_in_bytes_and_leave_room_for_the_rest(
    tmp_path: Path,
) -> None:
    engine_settings = engine(model(tmp_path, "0.6b"))
    size = model_size(engine_settings)
    assert size is not None
    places = share_out(engine_settings, lambda: H200).places
    each = size.weight_bytes + places[0].settings[KV_BYTES]
    assert each > 25 * GIB
    assert len(places) * (each + size.overhead_bytes(engine_settings, 140 * GIB)) <= 126 * GIB


def test_cuda_graphs_beyond_vllms_own_take_from_the_kv_cache_of_engines_on_one_gpu(
    tmp_path: Path,
) -> None:
    def kv_bytes(share: float, **options: Any) -> float:
        given = engine(model(tmp_path, "0.6b"), **options)
        given = given.model_copy(update={"prefill_share": share})
        return share_out(given, lambda: H200).places[0].settings[KV_BYTES]

    assert 1.1 * GIB < kv_bytes(0.0) - kv_bytes(0.0625) < 1.4 * GIB
    assert kv_bytes(0.0, max_num_seqs=4_096) - kv_bytes(0.0625, max_num_seqs=4_096) < 1.4 * GIB
    for own in ({"max_num_seqs": 512}, {"enforce_eager": True}):
        assert kv_bytes(0.0, **own) == kv_bytes(0.0625, **own)


@pytest.mark.parametrize(
    "options", [{"enable_lora": True}, {"speculative_config": {"method": "ngram"}}]
)
def test_engines_of_unknown_memory_measure_it_one_after_another(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    place = model(tmp_path, "0.6b")
    for settings in (engine(place, 2, **options), engine("some/model", 2)):
        shared = share_out(settings, lambda: H200).places
        assert [each.measures_memory for each in shared] == [True, True]
        assert shared[0].settings == {MEMORY: 0.45}


def test_a_given_cache_in_bytes_is_kept_and_nothing_is_measured(tmp_path: Path) -> None:
    settings = engine(model(tmp_path, "0.6b"), 2, kv_cache_memory_bytes=20 * GIB)
    place = share_out(settings, lambda: H200).places[0]
    assert (place.measures_memory, place.settings) == (False, {MEMORY: 0.45})


def test_replicas_fill_every_gpu_in_turn(tmp_path: Path) -> None:
    share = share_out(engine(model(tmp_path, "0.6b")), lambda: gpus(2))
    assert share.count == 4
    assert [place.gpus for place in share.places] == [("0",), ("1",)] * 4
    assert "on each of 2 GPUs" in share.reason
    assert share_out(engine(model(tmp_path, "8b")), lambda: gpus(3)).places == tuple(
        Place((name,)) for name in "012"
    )


def test_a_tensor_parallel_engine_has_a_group_of_gpus(tmp_path: Path) -> None:
    settings = engine(model(tmp_path, "8b"), tensor_parallel_size=2)
    share = share_out(settings, lambda: gpus(5))
    assert [place.gpus for place in share.places] == [("0", "1"), ("2", "3")]
    with pytest.raises(SettingsError, match=r"tensor_parallel_size: an engine needs 2 GPUs and"):
        share_out(settings, lambda: H200)
    ray = engine(settings.model or "", tensor_parallel_size=8, distributed_executor_backend="ray")
    assert share_out(ray, lambda: H200).places == (Place(),)


def test_listed_gpus_are_used_by_index_or_uuid(tmp_path: Path) -> None:
    def places(names: object) -> list[tuple[str, ...]]:
        settings = engine(model(tmp_path, "8b")).model_copy(update={"gpus": names})
        return [place.gpus for place in share_out(settings, lambda: gpus(4)).places]

    assert places(("3", "GPU-1")) == [("3",), ("1",)]
    with pytest.raises(SettingsError, match=r"engine\.gpus: there is no GPU 4; visible are: 0, 1"):
        places(("4",))
    with pytest.raises(SettingsError, match=r"engine\.gpus: a GPU is listed twice"):
        places(("1", "GPU-1"))


def test_gpus_that_nvml_cannot_read_are_used_as_listed(tmp_path: Path) -> None:
    amd = Machine((), 16, unlisted=True)
    place = model(tmp_path, "0.6b")
    assert share_out(engine(place, 1), lambda: amd).places == (Place(),)
    listed = engine(place, 1).model_copy(update={"gpus": ("1", "2")})
    assert [each.gpus for each in share_out(listed, lambda: amd).places] == [("1",), ("2",)]


@given(
    count=st.integers(1, 9),
    size=st.integers(1, 9),
    replicas=st.integers(1, 5),
)
def test_no_gpu_belongs_to_two_groups(count: int, size: int, replicas: int) -> None:
    settings = engine("some/model", replicas, tensor_parallel_size=size)
    if size > count:
        with pytest.raises(SettingsError):
            share_out(settings, lambda: gpus(count))
        return
    places = share_out(settings, lambda: gpus(count)).places
    groups = {place.gpus for place in places}
    names = [name for group in groups for name in group]
    assert len(names) == len(set(names)) == count - count % size
    assert len(places) == replicas * len(groups)


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


@given(replicas=st.integers(2, 64))
def test_the_shares_of_all_replicas_together_fit_the_gpu(replicas: int) -> None:
    places = share_out(engine("some/model", replicas), lambda: H200).places
    assert sum(place.settings[MEMORY] for place in places) <= GPU_SHARE + 1e-9


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


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size", "num_attention_heads"])
@pytest.mark.parametrize("invalid", [0, -1, "9", 1e400, float("nan"), True, 2**80, [1]])
def test_a_model_whose_config_is_odd_is_of_unknown_size(
    tmp_path: Path, name: str, invalid: object
) -> None:
    place = model(tmp_path, "0.6b", **{name: invalid})
    assert model_size(engine(place)) is None
    assert share_out(engine(place), lambda: H200).count == 1


def test_a_dense_model_may_name_its_experts_as_none_or_0(tmp_path: Path) -> None:
    dense = model_size(engine(model(tmp_path, "0.6b")))
    assert dense == model_size(engine(model(tmp_path, "0.6b", num_experts=0)))
    assert dense == model_size(engine(model(tmp_path, "0.6b", num_experts=None)))


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"text_config": 3}', "\ufeff{}"])
def test_a_config_that_is_no_object_is_of_unknown_size(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert model_size(engine(str(tmp_path))) is None


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


def test_engines_that_are_measured_share_the_first_gpu_as_replicas_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_worker.engines.sizing.this_machine", lambda: gpus(2))
    settings = engine(model(tmp_path, "0.6b"), replicas=4)
    replica, *_ = share_out(settings, lambda: gpus(2)).places
    places = first_places(settings, 4)
    assert places == (replica,) * 4
    assert places[0].gpus == ("0",)
    assert places[0].engine_options == {
        "gpu_memory_utilization": replica.settings[MEMORY],
        "kv_cache_memory_bytes": replica.settings[KV_BYTES],
    }
    (alone,) = first_places(settings, 1)
    assert (alone.gpus, alone.engine_options) == (("0",), {})
    pair = engine(model(tmp_path, "0.6b"), replicas=4, tensor_parallel_size=2)
    assert [place.gpus for place in first_places(pair, 1)] == [("0", "1")]


# --- one request must fit -------------------------------------------------------------------------

LONG = {"vocab_size": 151_936, "num_key_value_heads": 16, "max_position_embeddings": 262_144}


def kv_bytes(share: Share) -> float:
    return share.places[0].settings[KV_BYTES]


def test_auto_gives_every_engine_a_cache_that_holds_one_request(tmp_path: Path) -> None:
    place = model(tmp_path, "3b", **LONG)
    h100 = gpus(1, 80)
    request = 2 * 2 * 24 * 16 * 128 * 262_144  # keys and values of 16 bits: 48 GiB
    assert share_out(engine(place), lambda: h100).count == 1
    shorter = share_out(engine(place, max_model_len=32_768), lambda: h100)
    assert shorter.count == 2
    assert kv_bytes(shorter) > request * 32_768 / 262_144
    assert kv_bytes(share_out(engine(place, max_model_len=240_000), lambda: H200)) > 4 * GIB
    eight_bits = share_out(engine(place, kv_cache_dtype="fp8"), lambda: H200)
    assert eight_bits.count == 2
    assert kv_bytes(eight_bits) > request / 2


@given(
    layers=st.integers(1, 80),
    heads=st.sampled_from([1, 2, 4, 8]),
    context=st.sampled_from([2_048, 40_960, 131_072, 262_144, 1_048_576]),
    gib=st.sampled_from([24, 48, 80, 140, 180]),
)
def test_no_number_of_engines_leaves_less_than_one_request_where_one_engine_would_hold_it(
    tmp_path_factory: pytest.TempPathFactory, layers: int, heads: int, context: int, gib: int
) -> None:
    shape = {"num_hidden_layers": layers, "num_key_value_heads": heads}
    folder = tmp_path_factory.mktemp("model")
    place = model(folder, "1.7b", **shape, max_position_embeddings=context)
    share = share_out(engine(place), lambda: gpus(1, gib))
    if share.count > 1:
        assert kv_bytes(share) >= 2 * 2 * layers * heads * 128 * context


def test_layers_with_a_sliding_window_need_the_window_alone(tmp_path: Path) -> None:
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 4
    place = model(tmp_path, "3b", **LONG, layer_types=kinds, sliding_window=1_024)
    assert share_out(engine(place), lambda: gpus(1, 80)).count == 2


def test_a_compressed_cache_is_counted_as_one_vector_per_layer(tmp_path: Path) -> None:
    place = model(tmp_path, "1.7b", kv_lora_rank=512, qk_rope_head_dim=64)
    size = model_size(engine(place))
    assert size is not None
    assert size.kv_token_bytes == 28 * 2 * (512 + 64)


# --- models that say little -----------------------------------------------------------------------


def weights(folder: Path, gigabytes: float) -> None:
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(round(gigabytes * 1e9))  # a sparse file


def test_a_config_that_leaves_out_the_shape_is_sized_by_its_files(tmp_path: Path) -> None:
    sparse = {"text_config": {"hidden_size": 2560, "num_hidden_layers": 34}}
    (tmp_path / "config.json").write_text(json.dumps(sparse))
    without_files = share_out(engine(str(tmp_path)), lambda: H200)
    assert "its config.json gives none" in without_files.reason
    weights(tmp_path, 6.5)
    share = share_out(engine(str(tmp_path)), lambda: H200)
    assert share.count == 2
    assert [place.measures_memory for place in share.places] == [True, True]
    assert share_out(engine(str(tmp_path)), lambda: gpus(1, 24)).count == 1


def test_quantised_files_of_unknown_shape_count_as_four_bits(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"bits": 4}}))
    weights(tmp_path, 4)  # 8B parameters
    assert share_out(engine(str(tmp_path)), lambda: H200).count == 1


@pytest.mark.parametrize("experts", ["num_experts", "num_local_experts", "n_routed_experts"])
def test_all_experts_are_counted(tmp_path: Path, experts: str) -> None:
    place = model(tmp_path, "1.7b", **{experts: 64}, moe_intermediate_size=1_408)
    assert share_out(engine(place), lambda: H200).count == 1


def test_files_that_hold_more_than_the_config_says_are_believed(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    weights(tmp_path, 31)
    assert share_out(engine(place), lambda: H200).count == 1


def test_weights_in_32_bits_are_loaded_so_only_if_asked(tmp_path: Path) -> None:
    stored = model(tmp_path, "4b", torch_dtype="float32")
    asked, default, eight = (
        model_size(engine(stored, **options))
        for options in ({"dtype": "float32"}, {}, {"quantization": "fp8"})
    )
    assert asked is not None
    assert default is not None
    assert eight is not None
    assert asked.weight_bytes == 2 * default.weight_bytes == 4 * eight.weight_bytes
    assert asked.kv_token_bytes == 2 * default.kv_token_bytes


# --- odd machines ---------------------------------------------------------------------------------


def unequal(*gib: int) -> Machine:
    listed = (Gpu(str(n), f"GPU-{n}", size * GIB) for n, size in enumerate(gib))
    return Machine(tuple(listed), cores=16 * len(gib))


def test_each_gpu_gets_as_many_engines_as_its_own_memory_holds(tmp_path: Path) -> None:
    share = share_out(engine(model(tmp_path, "0.6b")), lambda: unequal(140, 22))
    assert [place.gpus for place in share.places] == [
        ("0",),
        ("1",),
        ("0",),
        ("1",),
        ("0",),
        ("0",),
    ]
    assert share.count == 4
    assert "GPU 0: auto: 4, because" in share.reason
    assert "GPU 1: auto: 2, because" in share.reason
    large, small = share.places[:2]
    assert large.settings[KV_BYTES] > small.settings[KV_BYTES]


def test_a_gpu_that_the_weights_do_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    place = model(tmp_path, "4b")
    share = share_out(engine(place), lambda: unequal(4, 140))
    assert {place.gpus for place in share.places} == {("1",)}
    assert share.reason.endswith("do not fit: GPU 0")
    every = share_out(engine(place), lambda: unequal(4, 4)).places
    assert [place.gpus for place in every] == [("0",), ("1",)]


def test_ray_places_one_engine_by_itself(tmp_path: Path) -> None:
    settings = engine(model(tmp_path, "0.6b"), distributed_executor_backend="ray")
    share = share_out(settings, lambda: gpus(4))
    assert (share.count, share.places) == (1, (Place(),))
    assert "vLLM places the engine itself" in share.reason


def test_a_variable_that_matches_no_gpu_is_named(tmp_path: Path) -> None:
    stale = Machine((), 16, unmatched="5")
    for listed in ("all", ("0",)):
        settings = engine(model(tmp_path, "0.6b")).model_copy(update={"gpus": listed})
        with pytest.raises(SettingsError, match="CUDA_VISIBLE_DEVICES=5 is none of this host's"):
            share_out(settings, lambda: stale)


def test_a_worker_runs_on_one_slice_and_inherits_how_it_is_shown(tmp_path: Path) -> None:
    slices = tuple(Gpu(f"MIG-{n}", f"MIG-{n}", 20 * GIB) for n in range(2))
    settings = engine(model(tmp_path, "0.6b"), 1)
    assert share_out(settings, lambda: Machine(slices[:1], 16)).places == (Place(),)
    with pytest.raises(SettingsError, match="2 MIG slices are visible"):
        share_out(settings, lambda: Machine(slices, 16))
    chosen = settings.model_copy(update={"gpus": ("MIG-1",)})
    assert share_out(chosen, lambda: Machine(slices, 16)).places == (Place(("MIG-1",)),)


def test_every_rank_of_data_parallelism_holds_all_weights(tmp_path: Path) -> None:
    place = model(tmp_path, "4b")
    graphs = {"max_num_seqs": 512}  # more would be captured with one rank only
    ranks = share_out(engine(place, 2, data_parallel_size=2, **graphs), lambda: gpus(2))
    one = share_out(engine(place, 2, **graphs), lambda: H200)
    assert kv_bytes(ranks) == kv_bytes(one)
    halves = share_out(engine(place, 2, tensor_parallel_size=2), lambda: gpus(2))
    assert kv_bytes(halves) > kv_bytes(one)


def test_an_option_without_a_value_is_as_good_as_none(tmp_path: Path) -> None:
    place = model(tmp_path, "0.6b")
    nulls = engine(place, kv_cache_memory_bytes=None, gpu_memory_utilization=None)
    assert share_out(nulls, lambda: H200).places == share_out(engine(place), lambda: H200).places
