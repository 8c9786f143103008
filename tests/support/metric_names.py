"""Names of all metrics of ours, as a scrape has them."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry

from dragoman_gateway.metrics import GatewayMetrics
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.supervisor import ReplicaMetrics

_SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}


@cache
def metric_names() -> frozenset[str]:
    """Return the names of every sample, without `_created`."""
    ours = (
        Metrics(CollectorRegistry()),
        ReplicaMetrics(CollectorRegistry()),
        GatewayMetrics(),
    )
    return frozenset(
        metric.name + suffix
        for one in ours
        for metric in one.registry.collect()
        for suffix in _SUFFIXES.get(metric.type, [""])
    )
