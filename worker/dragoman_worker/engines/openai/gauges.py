"""The server's own counts, from the /metrics of vLLM and its kin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Final

_SAMPLE: Final = re.compile(
    r"^(?:vllm|sglang):(\w+)(?:\{([^}]*)\})? ([-+0-9.eE]+|NaN)$", re.MULTILINE
)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Gauges:
    """Counts of one server, over all that it serves; those it does not report are None."""

    running: int
    waiting: int
    kv_cache_usage: float | None
    preemptions: int
    generated: int
    """Tokens since its start: stands still while it hangs."""
    kv_cache_tokens: int | None


def gauges_of(text: str) -> Gauges | None:
    """Return the counts in a page of metrics, None if they are not vLLM's or SGLang's."""
    sums: dict[str, float] = {}
    usage: list[float] = []
    tokens: int | None = None
    for name, labels, value in _SAMPLE.findall(text):
        if name == "cache_config_info":
            given = dict(_LABEL.findall(labels))
            tokens = _product(given.get("num_gpu_blocks"), given.get("block_size"))
        elif name in {"kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"}:
            usage += [number] if isfinite(number := float(value)) else []
        elif isfinite(number := float(value)):
            sums[name] = sums.get(name, 0.0) + number
    running = sums.get("num_requests_running", sums.get("num_running_reqs"))
    waiting = sums.get("num_requests_waiting", sums.get("num_queue_reqs"))
    if running is None or waiting is None:
        return None
    return Gauges(
        running=max(0, int(running)),
        waiting=max(0, int(waiting)),
        kv_cache_usage=min(1.0, max(0.0, *usage)) if usage else None,
        preemptions=int(sums.get("num_preemptions_total", 0)),
        generated=int(sums.get("generation_tokens_total", 0)),
        kv_cache_tokens=tokens,
    )


def _product(blocks: str | None, size: str | None) -> int | None:
    if blocks and size and blocks.isdecimal() and size.isdecimal():
        return int(blocks) * int(size) or None
    return None
