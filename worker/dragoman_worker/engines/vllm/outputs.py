"""vLLM's final limits and its outputs, as the values of the `Engine` port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.ports import EngineLimits, FinishReason, Generation

_FINISH_REASONS: Final = frozenset(get_args(FinishReason))
_FULL_BATCH_GPU: Final = 384
"""A GPU reads the weights once per step. That takes as long as computing with them for 150 to 300
sequences (peak FLOP/s divided by bytes per second), and the KV caches are read as well. Measured on
an H200 with 8B, jobs/s relative to 512 sequences: 64 gave 0.51, 128 gave 0.73, 256 gave 0.83."""
_FULL_BATCH_CPU: Final = 32
"""A CPU computes a tenth as many operations per byte read as a GPU."""


def real_limits(config: Any, *, on_cpu: bool) -> EngineLimits:
    """Return the limits in vLLM's final configuration; the KV cache is in tokens.

    With data parallelism they are those of all ranks together: vLLM gives the sequences and the
    cache in tokens per rank, the blocks of all ranks.
    """
    parallel = config.parallel_config
    cache = config.cache_config
    ranks = parallel.data_parallel_size
    blocks = (cache.num_gpu_blocks or 0) * cache.block_size
    per_rank = getattr(cache, "kv_cache_size_tokens", None) or 0
    return EngineLimits(
        max_num_seqs=config.scheduler_config.max_num_seqs * ranks,
        max_num_batched_tokens=config.scheduler_config.max_num_batched_tokens,
        max_model_len=config.model_config.max_model_len,
        kv_cache_tokens=per_rank * ranks or blocks,
        devices=0 if on_cpu else parallel.world_size * ranks,
        full_batch=_FULL_BATCH_CPU if on_cpu else _FULL_BATCH_GPU,
    )


def generation_of(
    outputs: Sequence[Any], decoded: Callable[[Sequence[int], str], str] | None = None
) -> Generation:
    """Convert vLLM's last output; its text is `decoded(token ids, finish reason)` if that is given.

    Raises PermanentEngineError without an output or a known finish reason, a bug of vLLM.
    """
    if not outputs or not outputs[-1].outputs:
        raise PermanentEngineError("vLLM finished the request without an output")
    output = outputs[-1]
    made = output.outputs[0]
    if made.finish_reason not in _FINISH_REASONS:
        raise PermanentEngineError(
            f"vLLM finished the request with the unknown reason {made.finish_reason!r}"
        )
    return Generation(
        text=decoded(made.token_ids, made.finish_reason) if decoded else made.text,
        finish_reason=made.finish_reason,
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=len(made.token_ids),
    )
