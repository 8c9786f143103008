"""Limits that the echo engine simulates, from the same `engine.options` as vLLM's."""

from __future__ import annotations

from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.ports import EngineLimits

_MAX_NUM_SEQS: Final = 256
_MAX_NUM_BATCHED_TOKENS: Final = 16_384
_MAX_MODEL_LEN: Final = 1_000_000
_KV_TOKENS_PER_SEQUENCE: Final = 1_024
_FULL_BATCH: Final = 1_000_000
"""Sequences do not slow each other down: throughput grows with their number without a limit."""


def echo_limits(options: dict[str, Any]) -> EngineLimits:
    """Return the limits; options that the echo engine does not have are ignored.

    Raises SettingsError.
    """
    seqs = _count(options, "max_num_seqs", _MAX_NUM_SEQS)
    context = _count(options, "max_model_len", _MAX_MODEL_LEN)
    return EngineLimits(
        max_num_seqs=seqs,
        max_num_batched_tokens=_count(options, "max_num_batched_tokens", _MAX_NUM_BATCHED_TOKENS),
        max_model_len=context,
        kv_cache_tokens=max(seqs * _KV_TOKENS_PER_SEQUENCE, context),
        full_batch=_FULL_BATCH,
    )


def _count(options: dict[str, Any], name: str, default: int) -> int:
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"engine.options.{name}: give a whole number above 0, not {value!r}")
    return value
