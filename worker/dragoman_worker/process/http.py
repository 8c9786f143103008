"""HTTP server and pages: /startupz, /livez, /readyz, and /metrics including vLLM's metrics."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from dragoman_connections.settings import SettingsError
from dragoman_worker.settings import HttpSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Checks = Callable[[], Mapping[str, bool]]
"""Named conditions: a page answers 200 if all hold, else 503 with the names of the others."""

_HOST: Final = "give one such as 127.0.0.1, or 0.0.0.0 for all"
_MOST_CONNECTIONS: Final = 128
"""Open connections of clients; a scrape opens one more per replica."""
_LAST_PAGES_S: Final = 0.2
"""Grace period for in-flight responses at shutdown: a second signal allows no more."""


class HttpServer:
    """Server on one port or one Unix socket; it answers long before the engine is warm."""

    def __init__(self, address: HttpSettings | Path, pages: Mapping[str, Handler]) -> None:
        self._address = address
        app = web.Application()
        for path, page in pages.items():
            app.router.add_get(path, page)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_LAST_PAGES_S)
        self._listening: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen and return the port, 0 for a Unix socket. Raises SettingsError if it cannot."""
        await self._runner.setup()
        if isinstance(self._address, Path):
            await web.UnixSite(self._runner, self._address).start()
            return 0
        host, port = self._address.host, self._address.port
        try:
            listening = await asyncio.get_running_loop().create_server(self._accept, host, port)
        except OSError as error:
            raise SettingsError(_why_not(host, port, error)) from None
        except ValueError:  # a NUL, or no name that IDNA can encode
            raise SettingsError(f"http.host: {host!r} is not an address; {_HOST}") from None
        self._listening = listening
        return int(listening.sockets[0].getsockname()[1])

    def _accept(self) -> asyncio.Protocol:
        """Return the protocol of a new connection, and close the oldest beyond the limit.

        Clients that never finish a request would otherwise use up the file descriptors of the
        supervisor. It could then neither ask a replica for its state nor start one.
        """
        server = self._runner.server
        assert server is not None  # noqa: S101  set up by `start`
        for oldest in server.connections[:-_MOST_CONNECTIONS]:
            if oldest.transport is not None:
                oldest.transport.abort()
        return server()

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()


def _why_not(host: str, port: int, error: OSError) -> str:
    # From Python 3.13 on asyncio raises an error without a number if no address can be bound.
    if isinstance(error, socket.gaierror) or error.errno in {None, errno.EADDRNOTAVAIL}:
        return f"http.host: {host!r} is not an address of this machine; {_HOST}"
    return (
        f"http.port: cannot listen on {host}:{port} ({error.strerror}); "
        "set another port, or 0 for any free one"
    )


class ReplicaLabel(Collector):
    """All metrics of the given registries with a `replica` label, so that one page holds many."""

    def __init__(self, replica: str, registries: Iterable[CollectorRegistry]) -> None:
        self._replica = replica
        self._registries = tuple(registries)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all registries, but only vLLM's of the global one."""
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


def replica_pages(
    replica: str, *, started: Checks, live: Checks, ready: Checks, metrics: CollectorRegistry
) -> dict[str, Handler]:
    """Return the pages of a replica; /metrics has `metrics` and vLLM's part of the global one."""
    page = CollectorRegistry()
    page.register(ReplicaLabel(replica, (metrics, REGISTRY)))
    return {
        "/startupz": _checks_page(started),
        "/livez": _checks_page(live),
        "/readyz": _checks_page(ready),
        "/metrics": _metrics_page(page),
    }


def checks_response(failing: Iterable[str]) -> web.Response:
    """Return 200 if no check fails, else 503 with the names of the failing ones."""
    if names := ", ".join(failing):
        return web.Response(status=503, text=f"not yet: {names}\n")
    return web.Response(text="ok\n")


def _checks_page(checks: Checks) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        return checks_response(name for name, holds in checks().items() if not holds)

    return handle


def _metrics_page(registry: CollectorRegistry) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return handle
