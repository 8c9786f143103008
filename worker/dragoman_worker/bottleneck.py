"""What limits throughput now? One cause, from readings of queue, permits and engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dragoman_worker.ports import EngineReadings

FULL: Final = 0.9
"""So much of the permits must be held for the engine to count as fed."""
KV_FULL: Final = 0.97
"""vLLM preempts when the next token of a running sequence finds no block."""


class Cause(StrEnum):
    """What would have to change for more jobs a second."""

    QUEUE_EMPTY = "queue_empty"
    FEED = "feed"
    KV_CACHE = "kv_cache"
    SEQUENCES = "sequences"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class Load:
    """The readings of one moment. `preempted` counts preemptions since the reading before."""

    queue_depth: int
    items_in_engine: int
    items_allowed: int
    max_num_seqs: int
    engine: EngineReadings
    preempted: int


def bottleneck(load: Load) -> Cause:
    """The first limit that holds, looking from the queue towards the engine."""
    fed = load.items_in_engine >= FULL * load.items_allowed
    if not fed:
        # what is in the engine is itself not settled yet, and so counts as queued
        return Cause.QUEUE_EMPTY if load.queue_depth <= load.items_in_engine else Cause.FEED
    if load.preempted > 0 or load.engine.kv_cache_usage >= KV_FULL:
        return Cause.KV_CACHE
    if load.engine.running >= load.max_num_seqs:
        return Cause.SEQUENCES
    return Cause.ENGINE
