"""CUDA graphs for the decodes of a full engine, which prefills in groups need (ADR 27).

Nothing here imports vLLM: the supervisor counts the memory of the graphs before an engine starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

VLLM_LARGEST: Final = 512
"""Most sequences of a CUDA graph by vLLM's own default; 1,024 on Blackwell from 0.32 on."""
LARGEST: Final = 1_024
"""Most sequences of a graph here. Larger ones were not measured, and each size takes memory."""
_LEFT_TO_VLLM: Final = (
    "compilation_config",
    "cudagraph_capture_sizes",
    "enforce_eager",
    "kv_transfer_config",
    "max_cudagraph_capture_size",
    "performance_mode",
    "scheduler_cls",
    "speculative_config",
)
"""Options by which the user decides on graphs, decodes have several tokens, or none are grouped."""
UNGROUPED: Final = ("data_parallel_size", "pipeline_parallel_size")
"""With more than one of these nothing is grouped."""


def graph_sizes(options: Mapping[str, Any], share: float, sequences: int) -> list[int]:
    """Return the sizes of the CUDA graphs of an engine for `sequences`; empty: vLLM's own.

    `options` are vLLM's, `share` is `engine.prefill_share`. The sizes are those that vLLM takes by
    itself, continued beyond its limit: a step of decodes alone in a full engine has up to
    `sequences` tokens.
    """
    if share == 0 or sequences <= VLLM_LARGEST:
        return []
    if any(options.get(name) for name in _LEFT_TO_VLLM):
        return []
    if any(options.get(name, 1) != 1 for name in UNGROUPED):
        return []
    if options.get("enable_chunked_prefill") is False:
        return []
    most = min(sequences, LARGEST)
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, most, 16))
    return [size for size in sizes if size < most] + [most]
