"""Spans of deliveries by OpenTelemetry: one per delivery, with children for its steps.

Span attributes follow the messaging and generative AI conventions; `dragoman.*` are the fields of
the log line `job_ended`. No document text, error message or metadata is ever recorded.

While a job runs, only ids and times are kept; its spans are made together when they have ended, and
not by the SDK's tracer, which samples and bounds each of them. Where one job in a hundred is
recorded, such code has left the processor's caches each time that it is needed, and takes three
times as long as otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from random import random
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NoOpTracer,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from dragoman_connections.tracing import close_provider
from dragoman_schemas.traces import TraceParent, traceparent_of
from dragoman_worker.ports import Delivery
from dragoman_worker.tracing import EngineCall, Trace, Tracer, enter

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_SCOPE: Final = InstrumentationScope("dragoman.worker")
_OK: Final = Status()


class SpanTracer(Tracer):
    """Records the deliveries whose sender records them, and a share of those without a trace."""

    def __init__(
        self,
        provider: TracerProvider,
        export: SpanProcessor,
        *,
        sample_ratio: float,
        group_id: str,
    ) -> None:
        self._provider = provider
        self._export = export
        # OTEL_SDK_DISABLED makes the provider's tracers record nothing.
        self._disabled = isinstance(provider.get_tracer(_SCOPE.name), NoOpTracer)
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
        if self._disabled:
            return None
        return enter(SpanTrace(self._provider, self._export, parent, delivery, self._group_id))

    async def close(self) -> None:
        """Export the last spans."""
        await close_provider(self._provider)


class SpanTrace(Trace):
    """A delivery that is recorded."""

    def __init__(
        self,
        provider: TracerProvider,
        export: SpanProcessor,
        sender: TraceParent | None,
        delivery: Delivery,
        group: str,
    ) -> None:
        self._provider = provider
        self._export = export
        self._parent = None if sender is None else _context_of(sender)
        self._trace_id = (
            provider.id_generator.generate_trace_id()
            if self._parent is None
            else self._parent.trace_id
        )
        self._context = self.child()
        super().__init__(_text(self._context))
        self._delivery = delivery
        self._group = group
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()
        self._begun = time.perf_counter()
        self._steps: list[tuple[str, float, float]] = []

    def child(self) -> SpanContext:
        """Return the ids of another span of the trace."""
        span_id = self._provider.id_generator.generate_span_id()
        return SpanContext(self._trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)

    def step(self, name: str, started: float, ended: float) -> None:
        """See `Trace`."""
        self._steps.append((name, started, ended))

    def engine_call(self, attempt: int) -> EngineCall:
        """See `Trace`."""
        return _EngineSpan(self, self.child(), attempt)

    def end(self, fields: Mapping[str, Any]) -> None:
        """See `Trace`."""
        ended = time.perf_counter()
        for step, *times in self._steps:
            self.record(step, self.child(), self._context, *times)
        delivery, code = self._delivery, fields.get("code")
        self.record(
            f"process {delivery.topic}",
            self._context,
            self._parent,
            self._begun,
            ended,
            kind=SpanKind.CONSUMER,
            status=_OK if code is None else Status(StatusCode.ERROR, str(code)),
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "messaging.consumer.group.name": self._group,
                "messaging.destination.name": delivery.topic,
                "messaging.destination.partition.id": str(delivery.partition),
                "messaging.kafka.offset": delivery.offset,
                **{
                    f"dragoman.{name}": value for name, value in fields.items() if value is not None
                },
            },
        )

    def record_call(
        self, context: SpanContext, begun: float, error: str | None, attributes: Mapping[str, int]
    ) -> None:
        """Record a generation that has ended now."""
        self.record(
            "generate",
            context,
            self._context,
            begun,
            time.perf_counter(),
            kind=SpanKind.CLIENT,
            status=_OK if error is None else Status(StatusCode.ERROR, error),
            attributes=attributes,
        )

    def record(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        begun: float,
        ended: float,
        **more: Any,
    ) -> None:
        """Hand a span that has ended to the export. The times are of `time.perf_counter`."""
        span = ReadableSpan(
            name,
            context,
            parent,
            self._provider.resource,
            start_time=self._ns(begun),
            end_time=self._ns(ended),
            instrumentation_scope=_SCOPE,
            **more,
        )
        # Its provider takes no span that has ended.
        self._export.on_end(span)

    def _ns(self, moment: float) -> int:
        return self._epoch_ns + int(moment * 1e9)


class _EngineSpan(EngineCall):
    def __init__(self, trace: SpanTrace, context: SpanContext, attempt: int) -> None:
        self.headers = {"traceparent": _text(context)}
        self._trace = trace
        self._context = context
        self._attempt = attempt
        self._begun = time.perf_counter()

    def end(self, error: str | None, tokens: tuple[int, int] | None) -> None:
        attributes = {"dragoman.attempt": self._attempt}
        if tokens is not None:
            attributes["gen_ai.usage.input_tokens"] = tokens[0]
            attributes["gen_ai.usage.output_tokens"] = tokens[1]
        self._trace.record_call(self._context, self._begun, error, attributes)


def _context_of(sender: TraceParent) -> SpanContext:
    return SpanContext(
        int(sender.trace_id, 16), int(sender.span_id, 16), is_remote=True, trace_flags=_SAMPLED
    )


def _text(context: SpanContext) -> str:
    return TraceParent(f"{context.trace_id:032x}", f"{context.span_id:016x}", True).text
