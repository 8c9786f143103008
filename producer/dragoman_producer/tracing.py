"""Spans of submissions by OpenTelemetry, and the `traceparent` that continues them in the worker.

Nothing is recorded or imported unless `tracing.enabled`. An application with an SDK of its own
records these spans beside its own; otherwise, as in the command line, the client opens one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman_connections.groups import TracingSettings
from dragoman_connections.tracing import close_provider, open_provider, traceparent
from dragoman_schemas.jobs import TranslationJob

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer


class SubmissionTracer:
    """Records one span per submission, as a child of the application's current span."""

    def __init__(self, tracer: Tracer, topic: str, own: TracerProvider | None) -> None:
        """`own` is the client's own provider, which `close` shuts down."""
        self._tracer = tracer
        self._topic = topic
        self._own = own

    @contextmanager
    def submission(self, job: TranslationJob) -> Iterator[str]:
        """Record a submission; yield its `traceparent`. An error is recorded by its class alone."""
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415  an extra

        span = self._tracer.start_span(
            f"send {self._topic}", kind=SpanKind.PRODUCER, attributes=_attributes(job, self._topic)
        )
        try:
            yield traceparent(span)
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            span.end()

    async def close(self) -> None:
        """Export the last spans, if the client has a provider of its own."""
        if self._own is not None:
            await close_provider(self._own)


def open_tracer(settings: TracingSettings, topic: str) -> SubmissionTracer | None:
    """Return the tracer; None if tracing is off. Raises SettingsError if the extra is missing."""
    if not settings.enabled:
        return None
    own = None
    provider = _application_s()
    if provider is None:
        own, _ = open_provider(settings, "dragoman", sample_ratio=settings.sample_ratio)
        provider = own
    return SubmissionTracer(provider.get_tracer("dragoman.client"), topic, own)


def _application_s() -> TracerProvider | None:
    """Return the SDK's provider that the application has set; None if it has set none."""
    try:
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  an extra
        from opentelemetry.trace import get_tracer_provider  # noqa: PLC0415
    except ImportError:
        return None
    provider = get_tracer_provider()
    return provider if isinstance(provider, TracerProvider) else None


def _attributes(job: TranslationJob, topic: str) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "messaging.system": "kafka",
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": topic,
        "dragoman.job_id": job.job_id,
        "dragoman.items": len(job.items),
        "dragoman.target_lang": job.target_lang,
    }
    if job.document is not None:
        attributes["dragoman.document_id"] = job.document.document_id
    return attributes
