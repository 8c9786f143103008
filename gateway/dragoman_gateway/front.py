"""HTTP: from a request to the endpoint of an API, and every answer in that API's shape."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from dragoman_gateway.calls import (
    NOT_FOUND,
    ApiCall,
    Endpoint,
    Route,
    Routes,
    error_body,
    json_response,
    secret_in_header,
    secret_of,
    shape_of,
    traceparent_of,
)
from dragoman_gateway.errors import ApiError, for_client
from dragoman_gateway.keys import ANYONE, Key, KeyRing
from dragoman_gateway.log import Log
from dragoman_gateway.metrics import GatewayMetrics
from dragoman_gateway.parameters import Parameters, check_length, read_parameters
from dragoman_gateway.settings import ServeSettings
from dragoman_producer.errors import DragomanError

_SLASHES: Final = re.compile("/{2,}")
_NO_ENDPOINT: Final = "other"
_CLIENT_LEFT: Final = 499
"""nginx's status for it, in metrics and log."""


class _Seen:
    """What metrics and log tell of a request."""

    def __init__(self, request: web.BaseRequest) -> None:
        self.began = time.monotonic()
        self.path = _SLASHES.sub("/", request.path).rstrip("/") or "/"
        self.traceparent = traceparent_of(request)
        self.parameters: Parameters | None = None
        self.endpoint = _NO_ENDPOINT
        self.call: ApiCall | None = None
        self.status = _CLIENT_LEFT


class Front:
    """Answers every request of the APIs."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        keys: KeyRing,
        settings: ServeSettings,
        metrics: GatewayMetrics,
        log: Log,
    ) -> None:
        self._routes = Routes(endpoints)
        self._keys = keys
        self._settings = settings
        self._metrics = metrics
        self._log = log
        self.draining = False
        self._held = 0
        self._empty = asyncio.Event()
        self._large: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def emptied(self, within_s: float) -> None:
        """Return once no request is held, or when the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._held:
                    self._empty.clear()
                    await self._empty.wait()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        seen = _Seen(request)
        self._hold(1)
        try:
            response = await self._response(request, seen)
            seen.status = response.status
        finally:
            self._hold(-1)
            self._report(seen)
        if self.draining:
            response.force_close()
        return response

    def _hold(self, change: int) -> None:
        self._held += change
        self._metrics.held.set(self._held)
        if not self._held:
            self._empty.set()

    async def _response(self, request: web.BaseRequest, seen: _Seen) -> web.StreamResponse:
        try:
            response = await self._answer(request, seen)
        except ApiError as error:
            response = self._failed(error, seen)
        except DragomanError as error:
            self._log.warning(f"{type(error).__name__}: {error}")
            response = self._failed(for_client(error), seen)
        headers = {
            "X-Trace-ID": seen.traceparent.split("-")[1],
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **self._cors(request, seen),
            **(seen.call.headers if seen.call is not None else {}),
        }
        response.headers.update(headers)
        return response

    async def _answer(self, request: web.BaseRequest, seen: _Seen) -> web.StreamResponse:
        route = self._routes.find(seen.path)
        if route is None:
            raise ApiError(404, NOT_FOUND)
        endpoint, seen.endpoint = route.endpoint, route.template
        allowed = endpoint.methods | ({"HEAD"} if "GET" in endpoint.methods else set())
        if request.method == "OPTIONS":
            return web.Response(status=204, headers={"Allow": ", ".join(sorted(allowed))})
        if request.method not in allowed:
            raise ApiError(405, f"Use {' or '.join(sorted(endpoint.methods))} here.")
        if not endpoint.needs_key:
            parameters, key = Parameters({}), ANYONE
            return await self._handled(request, seen, route, parameters, key)
        limit = self._settings.max_body_bytes
        sender = self._sender_of_much(request, endpoint)
        if sender is None:
            return await self._read_and_handled(request, seen, route, limit)
        async with self._large[sender.id]:  # a key has one of them in memory
            most = max(limit, endpoint.max_body_bytes or 0)
            return await self._read_and_handled(request, seen, route, most)

    def _sender_of_much(self, request: web.BaseRequest, endpoint: Endpoint) -> Key | None:
        """Return the key of a body that may be larger than others; None where it is not."""
        length = request.content_length
        usual = length is not None and length <= self._settings.max_body_bytes
        if endpoint.max_body_bytes is None or usual or not request.body_exists:
            return None
        return self._keys.find(secret_in_header(request))

    async def _read_and_handled(
        self, request: web.BaseRequest, seen: _Seen, route: Route, limit: int
    ) -> web.StreamResponse:
        parameters = seen.parameters = await self._parameters(request, limit)
        key = self._key(request, parameters, route.endpoint)
        return await self._handled(request, seen, route, parameters, key)

    async def _handled(
        self,
        request: web.BaseRequest,
        seen: _Seen,
        route: Route,
        parameters: Parameters,
        key: Key,
    ) -> web.StreamResponse:
        endpoint = route.endpoint
        seen.call = ApiCall(request, parameters, key, endpoint.api, seen.traceparent, route.place)
        found = await endpoint.handler(seen.call)
        return found if isinstance(found, web.StreamResponse) else json_response(found)

    async def _parameters(self, request: web.BaseRequest, limit: int) -> Parameters:
        if request.headers.get("Expect", "").lower() == "100-continue":
            check_length(request, limit)
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        return await read_parameters(request, limit)

    def _key(self, request: web.BaseRequest, parameters: Parameters, endpoint: Endpoint) -> Key:
        """Return the caller's key. Raises ApiError (403)."""
        secret = secret_of(request, parameters, in_query=self._settings.allow_query_keys)
        key = self._keys.find(secret)
        if key is None:
            wrong = "Invalid API key" if endpoint.api == "libretranslate" else "Wrong API key."
            raise ApiError(403, wrong)
        if endpoint.api not in key.apis:
            raise ApiError(403, "This key may not use this API.")
        return key

    def _failed(self, error: ApiError, seen: _Seen) -> web.Response:
        shape = shape_of(seen.path, seen.parameters)
        status = 403 if error.status == 456 and shape != "deepl" else error.status
        response = json_response(error_body(error, shape), status)
        if error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        if status in {408, 413, 415}:
            response.force_close()  # the rest of the body is not read
        return response

    def _cors(self, request: web.BaseRequest, seen: _Seen) -> Mapping[str, str]:
        """Return the headers that let pages of the settings' origins use LibreTranslate's API."""
        origin = request.headers.get("Origin", "")
        if origin not in self._settings.cors_origins or shape_of(seen.path, None) == "deepl":
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Headers": "Authorization, Content-Type",
            "Access-Control-Allow-Methods": "GET, POST",
            "Vary": "Origin",
        }

    def _report(self, seen: _Seen) -> None:
        seconds = time.monotonic() - seen.began
        endpoint = seen.endpoint
        call = seen.call
        api = call.api if call is not None else shape_of(seen.path, None)
        self._metrics.answered(api, endpoint, seen.status, seconds)
        self._log.request(
            trace_id=seen.traceparent.split("-")[1],
            key=call.key.id if call is not None else None,
            api=api,
            endpoint=endpoint,
            status=seen.status,
            ms=round(1000 * seconds),
            texts=call.texts if call is not None else 0,
            characters=call.characters if call is not None else 0,
        )
