"""Connections of callers: bounded in number, and not held open by those who send nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from dragoman_gateway.calls import (
    error_body,
    json_response,
    security_headers,
    traceparent_of,
)
from dragoman_gateway.errors import ApiError

HEADERS_S: Final = 10.0
"""Within which a new connection must have sent the headers of its first request."""
KEEP_ALIVE_S: Final = 75.0
WRITE_S: Final = 60.0
"""Within which a client must have read its answer."""
_LINGER_S: Final = 2.0
"""For which the rest of a refused body is read, so that its sender reads the answer."""
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: 36\r\n\r\n"
    b'{"message":"Too many connections."}\n'
)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpConnection(web.RequestHandler):
    """A connection whose errors look as the APIs' do."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and end if no request has come in time."""
        super().connection_made(transport)
        self._loop.call_later(HEADERS_S, self._end_silent)

    def _end_silent(self) -> None:
        if self._request_count == 0 and self.transport is not None:
            self.end()

    @property
    def waits_for_its_client(self) -> bool:
        """Whether no request of it is worked on: none has come, not all of one, or it is read."""
        request, transport = self._current_request, self.transport
        if isinstance(transport, asyncio.Transport) and transport.get_write_buffer_size():
            return True
        return not self._request_in_progress or (
            request is not None and not request.content.is_eof()
        )

    def refuse(self) -> None:
        """Answer that there are too many connections."""
        if self.transport is not None:
            self.transport.write(_FULL)
        self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; end the connection if its client does not read it."""
        try:
            async with asyncio.timeout(WRITE_S):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            self.end()
            return resp, True

    def end(self) -> None:
        """End the connection now, also if a part of an answer is still to be read."""
        transport = self.transport
        self.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to what is no HTTP, and to a defect of ours."""
        del exc
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer was sent")
        said = "The request is not valid HTTP." if status < 500 else "Internal error."
        del message  # it may quote the request
        response = json_response(
            {**error_body(ApiError(status, said), "deepl"), "error": said}, status
        )
        response.headers.update(security_headers(traceparent_of(request)))
        response.force_close()
        return response


class Connections(web.Server):
    """All connections. One too many ends the oldest that waits for its client, else itself."""

    def __init__(self, front: Handler, *, limit: int) -> None:
        """Answer requests by `front`."""
        super().__init__(
            front,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            lingering_time=_LINGER_S,
            auto_decompress=False,
        )
        self._limit = limit

    def __call__(self) -> HttpConnection:
        """Return a new connection."""
        return HttpConnection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection."""
        super().connection_made(handler, transport)
        if len(self._connections) <= self._limit or not isinstance(handler, HttpConnection):
            return
        for oldest in self._connections:
            if (
                isinstance(oldest, HttpConnection)
                and oldest is not handler
                and oldest.waits_for_its_client
            ):
                oldest.end()
                return
        handler.refuse()
