"""HTTP: from a request to the endpoint of an API, and every answer in that API's shape."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
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
    secret_of,
    secret_of_header,
    security_headers,
    shape_of,
    traceparent_of,
)
from dragoman_gateway.errors import ApiError, for_client, where
from dragoman_gateway.held import HeldRequests
from dragoman_gateway.keys import ANYONE, UNKNOWN, Key, KeyRing
from dragoman_gateway.local import is_of_a_page
from dragoman_gateway.log import Log
from dragoman_gateway.metrics import GatewayMetrics
from dragoman_gateway.parameters import Parameters, ask_for_body, read_parameters
from dragoman_gateway.settings import ServeSettings
from dragoman_producer.errors import DragomanError

_SLASHES: Final = re.compile("/{2,}")
_NO_ENDPOINT: Final = "other"
_CLIENT_LEFT: Final = 499
"""nginx's status for it, in metrics and log."""
_ONLY_HERE: Final = (
    "This gateway has no keys, so it answers only programs of this machine that call it localhost. "
    "Set serve.keys_file, or serve.cors_origins for a page."
)


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
        self._shares = HeldRequests(max(1, settings.max_connections // 2))
        self.draining = False
        self._held = 0
        self._empty = asyncio.Event()

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
        except Exception as error:  # noqa: BLE001  a defect of ours, told without its words
            self._log.warning(f"defect: {type(error).__name__} at {where(error)}")
            response = self._failed(ApiError(500, "Internal error."), seen)
        response.headers.update(security_headers(seen.traceparent))
        response.headers.update(self._cors(request, seen))
        if seen.call is not None:
            response.headers.update(seen.call.headers)
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
            return await self._called(request, seen, route, ANYONE, Parameters({}))
        secret = secret_of_header(request)
        known = None if secret is None else self._key(request, secret, endpoint)
        if endpoint.reads_body:
            with self._shares.held(known, alone=self._keys.alone):
                return await self._called(request, seen, route, UNKNOWN, Parameters({}))
        limit = self._limit(endpoint, secret)
        with self._shares.held(known, alone=self._keys.alone) as grown:
            parameters = seen.parameters = await self._parameters(request, limit, grown)
            if known is not None:
                return await self._called(request, seen, route, known, parameters)
        key = self._key_of(request, parameters, endpoint)
        with self._shares.held(key, alone=self._keys.alone) as grown:
            grown(parameters.body_bytes)
            return await self._called(request, seen, route, key, parameters)

    async def _called(
        self,
        request: web.BaseRequest,
        seen: _Seen,
        route: Route,
        key: Key,
        parameters: Parameters,
    ) -> web.StreamResponse:
        endpoint = route.endpoint
        seen.call = ApiCall(request, parameters, key, endpoint.api, seen.traceparent, route.place)
        seen.call.key_of = lambda given: self._key_of(request, given, endpoint)
        found = await endpoint.handler(seen.call)
        return found if isinstance(found, web.StreamResponse) else json_response(found)

    def _limit(self, endpoint: Endpoint, secret: str | None) -> int:
        """Return the largest body in bytes; some endpoints take larger ones of known callers."""
        usual = self._settings.max_body_bytes
        if self._keys.find(secret) is None:
            return usual
        return max(usual, endpoint.max_body_bytes or 0)

    async def _parameters(
        self, request: web.BaseRequest, limit: int, grown: Callable[[int], None]
    ) -> Parameters:
        await ask_for_body(request, limit)
        return await read_parameters(request, limit, grown)

    def _key_of(self, request: web.BaseRequest, parameters: Parameters, endpoint: Endpoint) -> Key:
        """Return the key of a request, whose body may have it. Raises ApiError (403)."""
        secret = secret_of_header(request)
        if secret is None:
            in_query = self._settings.allow_query_keys
            secret = secret_of(request, parameters, in_query=in_query)
        return self._key(request, secret, endpoint)

    def _key(self, request: web.BaseRequest, secret: str | None, endpoint: Endpoint) -> Key:
        """Return the key of a secret. Raises ApiError (403)."""
        key = self._keys.find(secret)
        if key is None:
            wrong = "Invalid API key" if endpoint.api == "libretranslate" else "Wrong API key."
            raise ApiError(403, wrong)
        if key is ANYONE and is_of_a_page(request, self._settings.cors_origins):
            raise ApiError(403, _ONLY_HERE)
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
