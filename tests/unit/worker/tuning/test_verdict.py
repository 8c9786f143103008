"""Is what the sweep chose kept only if it does better than what was there?"""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_worker.tuning.knee import Choice
from dragoman_worker.tuning.tuner import Findings, Tuner


def row(tokens_per_s: float, p99_ms: float) -> dict[str, Any]:
    return {
        "output_tokens_per_s": tokens_per_s,
        "latency_ms": {"p99": p99_ms},
        "decode_ms_per_token": 10.0,
        "limits": {"max_num_seqs": 64},
        "drive": {"items": None},
    }


class OneRow:
    """Measures whatever it is asked as the same row."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    async def measure(self, point: object) -> dict[str, Any]:
        return self._told


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        ((1200, 1000), False),  # more throughput
        ((1000, 5000), True),  # no more, and slower
        ((1020, 2000), True),  # within noise, and slower
        ((1000, 400), False),  # no more, but faster
        ((960, 400), True),  # faster, but less
        ((140, 10), True),  # much less: that of a few sequences
    ],
)
async def test_no_gain_in_an_engine_of_its_own_changes_nothing(
    chosen: tuple[float, float], kept: bool
) -> None:
    findings = Findings({"limits": {"max_num_seqs": 64}}, choice=Choice(256, "", degraded=False))
    findings.comparison["default"] = row(1000, 1000)
    harness: Any = OneRow(row(*chosen))
    settings: Any = None
    wishes: Any = type("Verify", (), {"stages": {"verify"}, "most_sequences": None})()
    await Tuner(harness, settings, settings, wishes)._verify(findings)
    assert findings.keeps_given is kept
    assert findings.options == ({} if kept else {"max_num_seqs": 256})
    assert bool(findings.notes) is kept
