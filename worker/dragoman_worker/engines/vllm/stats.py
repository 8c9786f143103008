"""Engine stats read from vLLM's own Prometheus collectors."""

from __future__ import annotations

import time
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry

from dragoman_worker.ports import EngineStats

_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_KV_USAGE: Final = "vllm:kv_cache_usage_perc"
_PREEMPTIONS: Final = "vllm:num_preemptions_total"
_FRESH_S: Final = 0.25


class VllmGauges:
    """Reader of four collectors of the registry (20 us), at most every quarter of a second.

    A custom stat logger would see every step, but vLLM calls that interface unstable, while the
    metric names have not changed from 0.26 to 0.33. vLLM sets its gauges after each step, so they
    keep their last values when it is idle. Counts are therefore limited to the requests in flight.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._registry = registry
        self._read_at = float("-inf")
        self._values: dict[str, float] = {}

    def stats(self, in_flight: int, max_num_seqs: int) -> EngineStats:
        """Return the current counts of the `in_flight` requests of this worker.

        With `disable_log_stats` there are no gauges: then up to `max_num_seqs` requests count as
        running, and the KV cache's usage is unknown.
        """
        values = self._fresh()
        running = min(in_flight, int(values.get(_RUNNING, max_num_seqs)))
        usage = values.get(_KV_USAGE)
        if usage is not None:
            usage = min(1.0, usage) if in_flight else 0.0
        waiting = in_flight - running
        return EngineStats(
            running=running,
            waiting=waiting,
            in_transit=max(0, waiting - int(values.get(_WAITING, waiting))),
            kv_cache_usage=usage,
            preemptions=int(values.get(_PREEMPTIONS, 0)),
        )

    def _fresh(self) -> dict[str, float]:
        now = time.monotonic()
        if now - self._read_at >= _FRESH_S:
            self._read_at = now
            self._values = self._read()
        return self._values

    def _read(self) -> dict[str, float]:
        """Sum over data-parallel engines, but take the largest KV cache usage."""
        values: dict[str, float] = {}
        wanted = [_RUNNING, _WAITING, _KV_USAGE, _PREEMPTIONS]
        for metric in self._registry.restricted_registry(wanted).collect():
            for sample in metric.samples:
                before = values.get(sample.name, 0.0)
                joined = max(before, sample.value) if sample.name == _KV_USAGE else None
                values[sample.name] = before + sample.value if joined is None else joined
        return values
