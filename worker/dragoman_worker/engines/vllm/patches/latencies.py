"""vLLM's own Prometheus metrics, recorded at a lower cost per token.

vLLM observes the time between two tokens once for every sequence and step, in the event loop of its
front end. Sequences that decode in the same two steps have the same time, so equal ones are counted
together here. The metrics are the same.
"""

from __future__ import annotations

import importlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

_LATENCIES: Final = "inter_token_latencies_iter"
_HISTOGRAM: Final = "histogram_inter_token_latency"


def stat_loggers(made: Any) -> Mapping[str, Any]:
    """Return the keyword of `from_engine_args` that makes vLLM record its metrics so.

    Empty with `disable_log_stats`. `made` is vLLM's AsyncEngineArgs.
    """
    if made.disable_log_stats:
        return {}
    base = importlib.import_module("vllm.v1.metrics.loggers").PrometheusStatLogger
    return {"stat_loggers": [counting_together(base)]}


def counting_together(base: type) -> type:
    """Return vLLM's Prometheus logger, with equal times between tokens observed together."""

    class CountingTogether(base):  # type: ignore[misc]  # vLLM's class is known at run time only
        """vLLM's Prometheus logger."""

        def record(self, scheduler_stats: Any, iteration_stats: Any, **others: Any) -> None:
            """Record one step."""
            histograms = getattr(self, _HISTOGRAM, None)
            latencies = getattr(iteration_stats, _LATENCIES, None)
            if histograms and latencies:
                observe_all(histograms[others.get("engine_idx", 0)], latencies)
                setattr(iteration_stats, _LATENCIES, [])
            super().record(scheduler_stats, iteration_stats, **others)

    return CountingTogether


def observe_all(histogram: Any, values: Iterable[float]) -> None:
    """Observe values in a histogram of prometheus_client, equal ones together.

    Its children have no method for that; one without the known fields observes value by value.
    """
    parts = [getattr(histogram, name, None) for name in ("_upper_bounds", "_buckets", "_sum")]
    known = all(part is not None for part in parts)
    bounds, buckets, total = cast("tuple[Sequence[float], Sequence[Any], Any]", parts)
    for value, number in Counter(values).items():
        if known:
            total.inc(value * number)
            buckets[bisect_left(bounds, value)].inc(number)
        else:
            for _ in range(number):
                histogram.observe(value)
