"""Tests of the one-line messages for failed starts, with vLLM's current wording."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm.start_failures import (
    TooLittleMemory,
    one_line,
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


def test_a_long_text_is_cut() -> None:
    assert one_line("a\n  b") == "a b"
    assert len(one_line("x" * 2_000)) == 500
