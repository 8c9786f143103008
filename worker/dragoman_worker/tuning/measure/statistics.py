"""Percentiles, arrival rates and the statistics of a measured row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SHARES: Final = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
_BURST_MS: Final = 10_000
_LEAST_SPAN_S: Final = 1.0


def spread(values: Sequence[float], digits: int = 1) -> dict[str, float] | None:
    """Return p50, p95, p99 and max by nearest rank, in the unit of the values; None if empty."""
    if not values:
        return None
    ordered = sorted(values)
    ranks = {name: max(1, math.ceil(share * len(ordered))) for name, share in _SHARES.items()}
    return {name: round(ordered[rank - 1], digits) for name, rank in ranks.items()}


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrival rates of jobs: mean over the sample, and over its busiest ten seconds."""

    jobs_per_s: float
    busiest_per_s: float

    def concurrency(self, service_s: float) -> tuple[float, float]:
        """Return concurrent jobs, mean and busiest: rate times service time (Little's law)."""
        return self.jobs_per_s * service_s, self.busiest_per_s * service_s


def arrivals(timestamps_ms: Sequence[int]) -> Arrivals | None:
    """Return the arrival rates, None if the timestamps span less than a second."""
    if len(timestamps_ms) < 2:
        return None
    first, last = min(timestamps_ms), max(timestamps_ms)
    span_s = (last - first) / 1000
    if span_s < _LEAST_SPAN_S:
        return None
    mean = (len(timestamps_ms) - 1) / span_s
    burst_s = min(_BURST_MS / 1000, span_s)
    counts = Counter((at - first) // _BURST_MS for at in timestamps_ms)
    return Arrivals(mean, max(mean, max(counts.values()) / burst_s))


def statistics_of(windows: Sequence[Mapping[str, Any]], sample: int) -> dict[str, Any]:
    """Return the statistics of a row from the windows of all engines that ran side by side.

    Rates are sums over the engines: their windows overlap up to milliseconds. `sample` is the
    number of jobs in the sample.
    """
    latencies = [1000 * one for window in windows for one in window["latencies"]]
    decode = [w["decode_s"] for w in windows if w["decode_s"] is not None]
    answers = [one for window in windows for one in window["answers"]]
    kv = [w["kv_usage_max"] for w in windows if w["kv_usage_max"] is not None]
    jobs = sum(window["jobs"] for window in windows)
    return {
        "seconds": round(max(window["seconds"] for window in windows), 3),
        "jobs": jobs,
        "jobs_per_s": _rate(windows, "jobs"),
        "items_per_s": _rate(windows, "items"),
        "output_tokens_per_s": _rate(windows, "output_tokens"),
        "prompt_tokens_per_s": _rate(windows, "prompt_tokens"),
        "decode_ms_per_token": round(1000 * sum(decode) / len(decode), 3) if decode else None,
        "latency_ms": spread(latencies),
        "answer_tokens": spread(answers, 0),
        "kv_usage_max": round(max(kv), 4) if kv else None,
        "running_max": sum(window["running_max"] for window in windows),
        "preemptions": sum(window["preemptions"] for window in windows),
        "gpu_busy": windows[0]["gpu_busy"],
        "cpu_cores": round(sum(window["cpu_cores"] for window in windows), 3),
        "failed": sum(window["failed"] for window in windows),
        "first_error": next((w["first_error"] for w in windows if w["first_error"]), None),
        "passes": round(jobs / sample / len(windows), 2),
    }


def _rate(windows: Sequence[Mapping[str, Any]], name: str) -> float:
    rates = (float(window[name] / window["seconds"]) for window in windows)
    return round(sum(rates), 3)
