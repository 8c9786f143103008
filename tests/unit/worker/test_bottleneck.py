"""Is the limit named that would have to change?"""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_worker.bottleneck import Cause, Load, bottleneck
from dragoman_worker.ports import EngineReadings


def load(**changed: Any) -> Load:
    """An engine that is fed and runs all it can, changed."""
    readings: dict[str, Any] = {
        "running": 64,
        "waiting": 12,
        "kv_cache_usage": 0.5,
        "preemptions": 3,
    }
    readings |= {name: changed.pop(name) for name in list(changed) if name in readings}
    values = {
        "queue_depth": 10_000,
        "items_in_engine": 76,
        "items_allowed": 77,
        "max_num_seqs": 64,
        "preempted": 0,
        **changed,
    }
    return Load(engine=EngineReadings(**readings), **values)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"queue_depth": 0, "items_in_engine": 0, "running": 0}, Cause.QUEUE_EMPTY),
        ({"queue_depth": 5, "items_in_engine": 5, "running": 5}, Cause.QUEUE_EMPTY),
        ({"items_in_engine": 20, "running": 20}, Cause.FEED),
        ({"kv_cache_usage": 0.99, "running": 40}, Cause.KV_CACHE),
        ({"preempted": 2}, Cause.KV_CACHE),
        ({}, Cause.SEQUENCES),
        ({"running": 50}, Cause.ENGINE),
    ],
)
def test_the_limit_that_would_have_to_change_is_named(
    changed: dict[str, Any], cause: Cause
) -> None:
    assert bottleneck(load(**changed)) is cause
