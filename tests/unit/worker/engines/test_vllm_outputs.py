"""The engine's limits are those of all its ranks together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.engines.vllm.outputs import real_limits


def config(ranks: int, kv_cache_tokens: int | None) -> Any:
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
    one = real_limits(config(1, kv_cache_tokens), on_cpu=False)
    four = real_limits(config(4, kv_cache_tokens), on_cpu=False)
    assert (one.max_num_seqs, one.kv_cache_tokens, one.devices) == (256, 16_000, 2)
    assert (four.max_num_seqs, four.kv_cache_tokens, four.devices) == (1_024, 64_000, 8)
    assert (four.max_num_batched_tokens, four.max_model_len) == (8_192, 4_096)
