"""Metrics of the gateway, and the pages of its second port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60)


class GatewayMetrics:
    """What Prometheus sees of one process."""

    def __init__(self, topics: Sequence[str] = ()) -> None:
        """Count what is shed of `topics` from 0 on: a rate sees no first event otherwise."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "dragoman_gateway_requests", "Requests answered.",
            ("api", "endpoint", "status"), registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "dragoman_gateway_request_seconds", "Time until the answer.",
            ("endpoint",), buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.held = Gauge(
            "dragoman_gateway_held", "Requests that wait for a translation.",
            registry=self.registry,
        )  # fmt: skip
        self.shed = Counter(
            "dragoman_gateway_shed", "Jobs refused because the wait is too long.",
            ("topic",), registry=self.registry,
        )  # fmt: skip
        self.characters = Counter(
            "dragoman_gateway_characters", "Characters submitted.",
            ("key",), registry=self.registry,
        )  # fmt: skip
        self.wait = Gauge(
            "dragoman_gateway_predicted_wait_seconds", "Predicted wait of a new job.",
            ("topic",), registry=self.registry,
        )  # fmt: skip
        self.documents = Gauge(
            "dragoman_gateway_documents", "Documents in the folder, also those of other gateways.",
            ("status",), registry=self.registry,
        )  # fmt: skip
        self.no_space = Counter(
            "dragoman_gateway_documents_no_space", "Documents that found no room.",
            registry=self.registry,
        )  # fmt: skip
        for topic in topics:
            self.shed.labels(topic)
        self.count_documents({})

    def count_documents(self, statuses: Mapping[str, int]) -> None:
        """Show how many documents have each status."""
        for status in ("queued", "translating", "done", "error"):
            self.documents.labels(status).set(statuses.get(status, 0))

    def answered(self, api: str, endpoint: str, status: int, seconds: float) -> None:
        """Count an answer; those of 503 begin at 0 with the first of their endpoint."""
        self.requests.labels(api, endpoint, "503")
        self.requests.labels(api, endpoint, str(status)).inc()
        self.seconds.labels(endpoint).observe(seconds)


def admin_pages(metrics: GatewayMetrics, is_ready: Callable[[], bool]) -> web.Application:
    """Return the pages of the second port: /livez, /readyz, /metrics."""

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        ready = is_ready()
        return web.Response(status=200 if ready else 503, text="ok\n" if ready else "draining\n")

    async def page(_: web.Request) -> web.Response:
        body = generate_latest(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", page)
    return app
