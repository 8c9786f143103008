"""What does the worker tell over HTTP? /livez, /readyz, and /metrics with vLLM's own in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from dragoman_schemas.connections import SettingsError
from dragoman_worker.settings import HttpSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Checks = Callable[[], Mapping[str, bool]]
"""Named conditions; a page answers 200 if all hold and 503 with the names of those that do not."""


class HttpServer:
    """One port a worker. Answers as soon as it is started, long before the engine is warm."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        live: Checks,
        ready: Checks,
        metrics: Callable[[], bytes],
    ) -> None:
        self._settings = settings
        app = web.Application()
        app.router.add_get("/livez", _page(live))
        app.router.add_get("/readyz", _page(ready))
        app.router.add_get("/metrics", _metrics_page(metrics))
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> int:
        """Listen, and tell the port. Raises SettingsError if that cannot be done."""
        host, port = self._settings.host, self._settings.port
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            raise SettingsError(
                f"http.port: cannot listen on {host}:{port} ({error.strerror}); "
                "give another port, or 0 for any free one"
            ) from None
        address: tuple[str, int] = self._runner.addresses[0]
        return address[1]

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()


class ReplicaLabel(Collector):
    """Every metric of the given registries, with a `replica` label, so that many fit one page."""

    def __init__(self, replica: str, registries: Iterable[CollectorRegistry]) -> None:
        self._replica = replica
        self._registries = tuple(registries)

    def collect(self) -> Iterable[Metric]:
        """Ours whole; of the global registry what vLLM puts there."""
        for registry in self._registries:
            for metric in registry.collect():
                if registry is not REGISTRY or metric.name.startswith("vllm:"):
                    yield self._labelled(metric)

    def _labelled(self, metric: Metric) -> Metric:
        copy = Metric(metric.name, metric.documentation, metric.type, metric.unit)
        copy.samples = [
            sample._replace(labels={**sample.labels, "replica": self._replica})
            for sample in metric.samples
        ]
        return copy


def metrics_page(replica: str, ours: CollectorRegistry) -> Callable[[], bytes]:
    """The text of /metrics: our registry and vLLM's part of the global one."""
    page = CollectorRegistry()
    page.register(ReplicaLabel(replica, (ours, REGISTRY)))
    return lambda: generate_latest(page)


def _page(checks: Checks) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        failing = [name for name, holds in checks().items() if not holds]
        if failing:
            return web.Response(status=503, text="not yet: " + ", ".join(failing) + "\n")
        return web.Response(text="ok\n")

    return handle


def _metrics_page(render: Callable[[], bytes]) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(body=render(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return handle
