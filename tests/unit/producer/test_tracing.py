"""A submission is a span of the application's trace, and none where tracing is off."""

from __future__ import annotations

import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from dragoman_connections.groups import TracingSettings
from dragoman_connections.settings import SettingsError
from dragoman_connections.tracing import traces_url
from dragoman_producer import client, tracing
from dragoman_producer.tracing import SubmissionTracer, open_tracer
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.traces import parse_traceparent

JOB = TranslationJob(job_id="a1", text="SECRET words", target_lang="de", metadata={"k": "SECRET"})
ON = TracingSettings(enabled=True)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def test_a_submission_is_a_child_of_the_application_s_span_without_any_text(
    provider: TracerProvider, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_application_s", lambda: provider)
    tracer = open_tracer(ON, "jobs")
    assert tracer is not None
    with provider.get_tracer("own").start_as_current_span("request"), tracer.submission(JOB) as own:
        parent = parse_traceparent(own.encode())
    sent, request = exporter.get_finished_spans()
    assert parent is not None
    assert parent.sampled
    assert sent.parent == request.get_span_context()
    assert f"{sent.get_span_context().span_id:016x}" == parent.span_id  # type: ignore[union-attr]
    assert "SECRET" not in sent.to_json()


def test_a_submission_that_is_not_sampled_says_so_to_the_worker() -> None:
    tracer = SubmissionTracer(TracerProvider(ALWAYS_OFF).get_tracer("x"), "jobs", None)
    with tracer.submission(JOB) as own:
        parent = parse_traceparent(own.encode())
    assert parent is not None
    assert not parent.sampled


def test_a_failed_submission_is_an_error_named_by_its_class(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    tracer = SubmissionTracer(provider.get_tracer("x"), "jobs", None)
    with pytest.raises(LookupError), tracer.submission(JOB):
        raise LookupError("SECRET")
    [sent] = exporter.get_finished_spans()
    assert (sent.status.status_code, sent.status.description) == (StatusCode.ERROR, "LookupError")
    assert "SECRET" not in sent.to_json()


def test_tracing_is_off_unless_it_is_switched_on() -> None:
    assert open_tracer(TracingSettings(), "jobs") is None


def test_a_missing_sdk_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingsError, match=r"tracing\.enabled: .*pip install '\.\[otel\]'"):
        open_tracer(ON, "jobs")


@pytest.mark.parametrize(
    "endpoint", ["", "collector:4318", "grpc://h:4317", "http://", "http://h:x"]
)
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="OTLP/HTTP"):
        TracingSettings(endpoint=endpoint)


def test_the_setting_wins_over_opentelemetry_s_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert traces_url(ON) == "http://localhost:4318/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:1/")
    assert traces_url(ON) == "http://base:1/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:2/own")
    assert traces_url(ON) == "http://traces:2/own"
    given = TracingSettings(enabled=True, endpoint="http://given:3")
    assert traces_url(given) == "http://given:3/v1/traces"


@pytest.mark.parametrize("odd", ["\ud800", "00-é", "\U0001f600"])
def test_a_traceparent_that_is_no_ascii_is_sent_as_one_that_no_worker_accepts(odd: str) -> None:
    [(name, value)] = client._headers(0, odd)
    assert name == "traceparent"
    assert parse_traceparent(value) is None
