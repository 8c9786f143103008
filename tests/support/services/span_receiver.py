"""A collector of OTLP over HTTP that keeps the spans it receives."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """One span, with its ids in hexadecimal digits."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    failed: bool


class SpanReceiver:
    """Listens on a free port of the loopback interface while its context is open."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        """What `tracing.endpoint` names."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, trace_id: str) -> list[ReceivedSpan]:
        """Return the spans of one trace that have arrived."""
        return [span for span in self.spans if span.trace_id == trace_id]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        spans = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                spans.extend(_received(ExportTraceServiceRequest.FromString(body)))
                reply = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                del format, args

        return Handler


def _received(request: ExportTraceServiceRequest) -> list[ReceivedSpan]:
    return [
        ReceivedSpan(
            service=_values(part.resource.attributes).get("service.name", ""),
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            attributes=_values(span.attributes),
            failed=span.status.code == 2,
        )
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in attributes}
