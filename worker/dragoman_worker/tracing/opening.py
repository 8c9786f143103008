"""The tracer that the settings ask for."""

from __future__ import annotations

from dragoman_connections.tracing import open_provider
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tracing import Tracer


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
