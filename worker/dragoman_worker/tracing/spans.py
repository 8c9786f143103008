"""Spans of deliveries by OpenTelemetry: one per delivery, with children for its steps.

Span attributes follow the messaging and generative AI conventions; `dragoman.*` are the fields of
the log line `job_ended`. No document text, error message or metadata is ever recorded.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from random import random
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Tracer as SdkTracer

from dragoman_connections.tracing import close_provider, traceparent
from dragoman_schemas.traces import TraceParent, traceparent_of
from dragoman_worker.ports import Delivery
from dragoman_worker.tracing import EngineCall, Trace, Tracer, enter

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class SpanTracer(Tracer):
    """Records the deliveries whose sender records them, and a share of those without a trace.

    The decision is made here, because the SDK takes 10 us to build a span that it then drops.
    """

    def __init__(self, provider: TracerProvider, *, sample_ratio: float, group_id: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("dragoman.worker")
        self._sample_ratio = sample_ratio
        self._group_id = group_id

    def begin(self, delivery: Delivery) -> Trace | None:
        """See `Tracer`."""
        parent = traceparent_of(delivery.headers) if delivery.headers else None
        if parent is None:
            if random() >= self._sample_ratio:  # noqa: S311  no secret
                return None
        elif not parent.sampled:
            return enter(Trace(parent.text))
        span = self._tracer.start_span(
            f"process {delivery.topic}",
            _context(parent),
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "messaging.consumer.group.name": self._group_id,
                "messaging.destination.name": delivery.topic,
                "messaging.destination.partition.id": str(delivery.partition),
                "messaging.kafka.offset": delivery.offset,
            },
        )
        return enter(SpanTrace(self._tracer, span)) if span.is_recording() else None

    async def close(self) -> None:
        """Export the last spans."""
        await close_provider(self._provider)


def _context(parent: TraceParent | None) -> Context:
    """Return the context of a new span: a child of the sender's, or a root."""
    if parent is None:
        return Context()
    sender = SpanContext(
        int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=True, trace_flags=_SAMPLED
    )
    return set_span_in_context(NonRecordingSpan(sender), Context())


class SpanTrace(Trace):
    """A delivery that is recorded."""

    def __init__(self, tracer: SdkTracer, span: Span) -> None:
        super().__init__(traceparent(span))
        self._tracer = tracer
        self._span = span
        self._context = set_span_in_context(span, Context())
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()

    def step(self, name: str, started: float, ended: float) -> None:
        """See `Trace`."""
        span = self._tracer.start_span(name, self._context, start_time=self._ns(started))
        span.end(self._ns(ended))

    def engine_call(self, attempt: int) -> EngineCall:
        """See `Trace`."""
        attributes = {"dragoman.attempt": attempt}
        span = self._tracer.start_span(
            "generate", self._context, kind=SpanKind.CLIENT, attributes=attributes
        )
        return _EngineSpan(span)

    def end(self, fields: Mapping[str, Any]) -> None:
        """See `Trace`."""
        self._span.set_attributes(
            {f"dragoman.{name}": value for name, value in fields.items() if value is not None}
        )
        if (code := fields.get("code")) is not None:
            self._span.set_status(Status(StatusCode.ERROR, str(code)))
        self._span.end()

    def _ns(self, moment: float) -> int:
        return self._epoch_ns + int(moment * 1e9)


class _EngineSpan(EngineCall):
    def __init__(self, span: Span) -> None:
        self.headers = {"traceparent": traceparent(span)}
        self._span = span

    def end(self, error: str | None, tokens: tuple[int, int] | None) -> None:
        if tokens is not None:
            self._span.set_attribute("gen_ai.usage.input_tokens", tokens[0])
            self._span.set_attribute("gen_ai.usage.output_tokens", tokens[1])
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR, error))
        self._span.end()
