"""The trace that a delivery belongs to: for log lines, results, dead letters and spans.

This module records nothing. `spans` does, if `tracing.enabled`; only it imports OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from structlog.contextvars import bind_contextvars

from dragoman_connections.tracing import open_provider
from dragoman_schemas.traces import traceparent_of
from dragoman_worker.settings import WorkerSettings

if TYPE_CHECKING:
    from dragoman_worker.ports import Delivery

_CURRENT: Final[ContextVar[Trace | None]] = ContextVar("trace", default=None)


class EngineCall:
    """One generation in the engine that is recorded."""

    headers: Mapping[str, str]
    """What makes the engine's own span a child of it."""

    def end(self, error: str | None, tokens: tuple[int, int] | None) -> None:
        """Record the end: an error code or None, and the tokens read and written, if known."""
        raise NotImplementedError


class Trace:
    """The trace of one delivery that is not sampled: only its ids are known."""

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent
        """For whatever belongs to the same trace later: the result and the dead letter."""

    def step(self, name: str, started: float, ended: float) -> None:
        """Record a step of the job, by `time.perf_counter`."""

    def engine_call(self, attempt: int) -> EngineCall | None:
        """Begin to record a generation; None if the trace is not sampled."""
        del attempt
        return None

    def end(self, fields: Mapping[str, Any]) -> None:
        """Record the end of the delivery. `fields` are those of `job_ended`."""


def current() -> Trace | None:
    """Return the trace of the delivery that this task works on; None if there is none."""
    return _CURRENT.get()


def enter(trace: Trace) -> Trace:
    """Make it the trace of this task and of the tasks that it starts, and of their log lines."""
    _CURRENT.set(trace)
    bind_contextvars(trace_id=trace.traceparent[3:35])
    return trace


class Tracer:
    """Finds the traces of deliveries and records no spans: tracing is off."""

    def begin(self, delivery: Delivery) -> Trace | None:
        """Enter the trace of the delivery in its own task; None if it belongs to none."""
        parent = traceparent_of(delivery.headers) if delivery.headers else None
        return None if parent is None else enter(Trace(parent.text))

    async def close(self) -> None:
        """Export what is recorded."""


def open_tracer(settings: WorkerSettings) -> Tracer:
    """Return the tracer of a replica. Raises SettingsError if the extra `otel` is missing."""
    tracing = settings.tracing
    if not tracing.enabled:
        return Tracer()
    provider, export = open_provider(
        tracing,
        "dragoman-worker",
        sample_ratio=1.0,  # the tracer has decided before it asks for a span
        attributes={"service.instance.id": settings.worker_id},
    )
    from dragoman_worker.tracing.spans import SpanTracer  # noqa: PLC0415  an extra

    return SpanTracer(
        provider, export, sample_ratio=tracing.sample_ratio, group_id=settings.kafka.group_id
    )
