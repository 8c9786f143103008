"""A proxy that plays DeepL's mock server in front of the gateway: its `mock-server-*` headers.

The suites use them to ask for answers that no real server gives on demand. Keys other than
`invalid` count as the gateway's own key. The second port answers as a proxy of HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
from aiohttp import web

_SESSION: Final = "mock-server-session"
_NEVER_S: Final = 3600.0
_OWN: Final = frozenset({"host", "content-length", "connection", "authorization", "expect"})
_NOT_BACK: Final = frozenset({"content-length", "connection", "transfer-encoding", "date"})


class DeepLShim:
    """The proxy; `port` and `proxy_port` are free ones."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key
        self._asked: Counter[tuple[str, str]] = Counter()

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        self._runners: list[web.ServerRunner] = []
        self.port = await self._listen(proxy=False)
        self.proxy_port = await self._listen(proxy=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for runner in self._runners:
            await runner.cleanup()
        await self._http.close()

    async def _listen(self, *, proxy: bool) -> int:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await self._handle(request, proxy=proxy)

        runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    async def _handle(self, request: web.BaseRequest, *, proxy: bool) -> web.StreamResponse:
        session = request.headers.get(_SESSION, "")
        if request.headers.get(f"{_SESSION}-expect-proxy") == "1" and not proxy:
            return _refused(400, "The request did not come by the proxy.")
        if self._is_among_first(request, session, "no-response-count"):
            await asyncio.sleep(_NEVER_S)
        if request.path == "/v2/translate" and self._is_among_first(request, session, "429-count"):
            return _refused(429, "Too many requests.")
        if request.path == "/v2/translate_secondary":
            return await self._passed(request, "/v2/translate")
        return await self._passed(request, request.path)

    def _is_among_first(self, request: web.BaseRequest, session: str, what: str) -> bool:
        """Return whether a header asks for this for as many requests as have come."""
        count = int(request.headers.get(f"{_SESSION}-{what}", "0"))
        self._asked[session, what] += 1
        return self._asked[session, what] <= count

    async def _passed(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        wrong = "invalid" in given or not given
        headers = {name: value for name, value in request.headers.items() if _passes(name)}
        headers["Authorization"] = given if wrong else f"DeepL-Auth-Key {self._key}"
        options: Mapping[str, Any] = {"params": request.query, "data": await request.read()}
        async with self._http.request(
            request.method, f"{self._url}{path}", headers=headers, **options
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _NOT_BACK}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)


def _passes(name: str) -> bool:
    return name.lower() not in _OWN and not name.lower().startswith(_SESSION)


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)
