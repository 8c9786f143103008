"""OpenTelemetry's SDK as worker and commands use it: spans to a collector by OTLP over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dragoman_connections.groups import TracingSettings
from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import how_to_install
from dragoman_schemas.traces import TraceParent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Span

EXPORT_S: Final = 3.0
"""Longest export of one batch. A drain waits for two of them: one under way and the last one."""
_LOCAL: Final = "http://localhost:4318"


def traces_url(settings: TracingSettings) -> str:
    """Return where spans are sent: `tracing.endpoint`, else OpenTelemetry's own variables."""
    if settings.endpoint is None and (own := os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")):
        return own
    base = settings.endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or _LOCAL
    return f"{base.rstrip('/')}/v1/traces"


def open_provider(
    settings: TracingSettings,
    service: str,
    *,
    sample_ratio: float,
    attributes: Mapping[str, str] | None = None,
) -> tuple[TracerProvider, SpanProcessor]:
    """Return a provider that records this share of roots, and children like their parents.

    With it comes its only processor, which exports the spans that it is given when they have ended.
    OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over `service` and `attributes`. A collector
    that does not answer costs spans, never a job. Raises SettingsError if the extra is missing.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio  # noqa: PLC0415
    except ImportError:
        raise SettingsError(
            f"tracing.enabled: OpenTelemetry is not installed; {how_to_install('otel')}"
        ) from None
    named = Resource({"service.name": service, **(attributes or {})})
    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(sample_ratio),
        resource=named.merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=traces_url(settings), timeout=EXPORT_S)
    processor = BatchSpanProcessor(exporter)
    provider.add_span_processor(processor)
    return provider, processor


def traceparent(span: Span) -> str:
    """Return the header by which another process continues the trace of a span."""
    context = span.get_span_context()
    sampled = bool(context.trace_flags.sampled)
    return TraceParent(f"{context.trace_id:032x}", f"{context.span_id:016x}", sampled).text


async def close_provider(provider: TracerProvider) -> None:
    """Export the last spans and stop. Takes at most some seconds, also without a collector."""
    await asyncio.to_thread(provider.shutdown)
