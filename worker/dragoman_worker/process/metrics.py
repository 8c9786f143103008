"""What does the supervisor itself measure?"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class ReplicaMetrics:
    """Metrics about replicas, told by the process that holds them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.up = Gauge(
            "dragoman_replica_up",
            "1 for a replica that answered this scrape.",
            ["replica"],
            registry=registry,
        )
        self.restarts = Counter(
            "dragoman_replica_restarts",
            "Times a replica was started again.",
            ["replica"],
            registry=registry,
        )
