"""Tests of the one-line messages for failed starts, with vLLM's current wording."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.one_line import one_line
from dragoman_worker.engines.vllm.start_failures import (
    TooLittleMemory,
    start_failure,
)
from dragoman_worker.errors import Halt

CORE_FAILED = RuntimeError(
    "Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)
KV_0_32 = (
    "ValueError: To serve at least one request with the model's max seq len (8000000), (1.91 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (1.0 GiB). Based on "
    "the available memory, the estimated maximum model length is 4194176. Try increasing "
    "`gpu_memory_utilization`"
)
KV_NOTHING_FITS = (
    "ValueError: To serve at least one request with the model's max seq len (100), (1.91 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (0.0 GiB). Try increasing"
)
DERIVED = (
    "User-specified max_model_len (1000) is greater than the derived max_model_len "
    "(max_position_embeddings=512 or model_max_length=None in model's config.json)."
)
BATCH = "ValueError: max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (8)."
TAKEN = (
    "ValueError: Free memory on device cuda:0 (3.1/139.8 GiB) on startup is less than desired GPU "
    "memory utilization (0.9, 125.8 GiB). Decrease GPU memory utilization"
)


OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 139.80 GiB of which 1022.00 MiB is free. Process 77 has 38.3 GiB memory in use. "
    "Including non-PyTorch memory, this process has {own} memory in use. Of the allocated memory"
)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (KV_0_32, ["engine.options.max_model_len", "8000000", "largest that fits is 4194176"]),
        (KV_NOTHING_FITS, ["engine.options.max_model_len", "even a very short one does not fit"]),
        (DERIVED, ["engine.options.max_model_len", "1000", "at most 512"]),
        (TAKEN, ["engine.options.gpu_memory_utilization", "3.1 of 139.8 GiB", "125.8 GiB"]),
        (TAKEN, ["other processes hold 136.7 GiB"]),
        (OUT_OF_MEMORY.format(own="100.5 GiB"), ["other processes hold 38.3 GiB"]),
        (
            "ValueError: No available memory for the cache blocks. Try increasing",
            ["engine.options.gpu_memory_utilization", "raise"],
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
            ["engine.options.gpu_memory_utilization", "ran out of memory"],
        ),
        (BATCH, ["engine.options.max_num_batched_tokens", "at least 8"]),
    ],
)
def test_a_failure_in_the_engine_process_names_the_setting(reason: str, words: list[str]) -> None:
    failure = start_failure(CORE_FAILED, reason, "m")
    assert isinstance(failure, SettingsError)
    assert "\n" not in str(failure)
    for word in words:
        assert word in str(failure)


@pytest.mark.parametrize(
    ("reason", "of_device"),
    [
        (KV_0_32, True),
        (TAKEN, True),
        (OUT_OF_MEMORY.format(own="100.5 GiB"), True),
        ("ValueError: No available memory for the cache blocks.", True),
        (DERIVED, False),
        (BATCH, False),
    ],
)
def test_a_failure_that_another_gpu_may_not_have_is_one_of_its_memory(
    reason: str, *, of_device: bool
) -> None:
    assert isinstance(start_failure(CORE_FAILED, reason, "m"), TooLittleMemory) is of_device


def test_memory_that_the_engine_itself_took_is_not_said_to_be_held_by_others() -> None:
    failure = start_failure(CORE_FAILED, OUT_OF_MEMORY.format(own="138.5 GiB"), "m")
    assert "ran out of memory while" in str(failure)


def test_a_failure_in_this_process_names_the_setting_too() -> None:
    failure = start_failure(ValueError(DERIVED), None, "m")
    assert isinstance(failure, SettingsError)
    assert "at most 512" in str(failure)


def test_an_option_that_vllm_validates_is_named() -> None:
    class CacheConfig(BaseModel):
        gpu_memory_utilization: float
        block_size: int = 1

        @field_validator("block_size")
        @classmethod
        def _known(cls, value: int) -> int:
            raise ValueError(DERIVED if value == 7 else "must be 16")

    with pytest.raises(ValidationError) as invalid:
        CacheConfig.model_validate({"gpu_memory_utilization": "much", "block_size": 3})
    failure = start_failure(invalid.value, None, "m")
    assert isinstance(failure, SettingsError)
    assert str(failure).startswith("engine.options.gpu_memory_utilization: ")
    assert "engine.options.block_size: must be 16" in str(failure)
    with pytest.raises(ValidationError) as known:
        CacheConfig.model_validate({"gpu_memory_utilization": 1, "block_size": 7})
    assert "at most 512" in str(start_failure(known.value, None, "m"))


def test_a_model_that_cannot_be_fetched_is_named() -> None:
    failure = start_failure(OSError("a/b is not a local folder and\nnot a model"), None, "a/b")
    assert isinstance(failure, SettingsError)
    assert str(failure).startswith("engine.model: a/b ")


@pytest.mark.parametrize("reason", [None, "RuntimeError: the driver is\n too old"])
def test_any_other_failure_halts_with_one_line(reason: str | None) -> None:
    failure = start_failure(CORE_FAILED, reason, "m")
    assert isinstance(failure, Halt)
    assert "\n" not in str(failure)
    assert ("driver is too old" in str(failure)) is (reason is not None)


NO_BLOCKS = "ValueError: No available memory for the cache blocks. Try increasing"
ON_A_CPU = (
    "ValueError: Available memory on node 0 (17.82/22.46 GiB) on startup is less than desired CPU "
    "memory utilization (0.92, 20.66 GiB). On the CPU backend, the `--gpu-memory-utilization` flag "
    "controls the fraction of CPU memory reserved (despite its name)."
)
CACHE_ON_A_CPU = (
    "ValueError: Available memory on node 0 (15.91/23.54 GiB) on kv cache allocation is less than "
    "requested memory for kv (100000.0 GiB). Decrease --kv-cache-memory-bytes, "
    "VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory used by other processes."
)
NUMA = (
    "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers. Allowed "
    "NUMA nodes are [0]. Please try to bind threads manually or decrease DP/TP/PP."
)
NOT_ALLOCATED = (
    "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
    "allocate memory: you tried to allocate 4000000000000 bytes. Error code 12 (Cannot allocate "
    "memory)"
)
NO_NUMBER = "ValueError: invalid literal for int() with base 10: 'abc'"
PORT = "ValueError: VLLM_PORT '80x' must be a valid integer"
CUT = (
    "SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered"
)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (NO_BLOCKS, ["engine.options.num_gpu_blocks_override: 1 blocks"]),
        (ON_A_CPU, ["engine.options.gpu_memory_utilization", "20.66 GiB", "17.82 of 22.46 GiB"]),
        (CACHE_ON_A_CPU, ["VLLM_CPU_KVCACHE_SPACE", "100000.0 GiB", "lower it"]),
        (NUMA, ["engine.options.tensor_parallel_size", "2 parts", "NUMA"]),
        (NOT_ALLOCATED, ["engine.options.max_num_seqs: 1000000000000", "3725.3 GiB"]),
        (NO_NUMBER, ["VLLM_CPU_KVCACHE_SPACE", "'abc'", "give a number"]),
        (PORT, ["VLLM_PORT", "'80x'", "environment variable"]),
        (CUT, ["engine.model: a file of weights of m", "copy or download it again"]),
    ],
)
def test_a_failure_names_the_option_variable_or_file_that_vllm_does_not_name(
    reason: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "abc")
    options = {"num_gpu_blocks_override": 1, "max_num_seqs": 10**12, "max_model_len": 512}
    failure = start_failure(CORE_FAILED, reason, "m", options)
    assert isinstance(failure, SettingsError)
    for word in words:
        assert word in str(failure)


def test_the_damaged_one_of_several_files_of_weights_is_named(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    whole = len(header).to_bytes(8, "little") + header + b"data"
    (tmp_path / "1.safetensors").write_bytes(whole)
    damaged = {
        whole[:-2]: f"has {len(whole) - 2} of {len(whole)} bytes",
        whole[:20]: "has 20 bytes and ends in its header",
        b"": "has 0 bytes and ends in its header",
        (1).to_bytes(8, "little") + b"x": "has no valid header",
    }
    for data, words in damaged.items():
        (tmp_path / "2.safetensors").write_bytes(data)
        failure = start_failure(CORE_FAILED, CUT, str(tmp_path))
        assert isinstance(failure, SettingsError)
        assert f"{tmp_path / '2.safetensors'} {words}; " in str(failure)


def test_a_long_text_is_cut() -> None:
    assert one_line("a\n  b") == "a b"
    assert len(one_line("x" * 2_000)) == 500
