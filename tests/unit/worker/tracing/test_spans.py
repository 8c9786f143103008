"""A traced delivery is one span with its steps as children, and no text is in any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dragoman_worker import tracing
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.tracing import Tracer
from dragoman_worker.tracing.spans import SpanTracer
from support.fakes.core import Core, record

TRACE = "0af7651916cd43dd8448eb211c80319c"
SENDER = "b7ad6b7169203331"
SAMPLED = [("traceparent", f"00-{TRACE}-{SENDER}-01".encode())]
NOT_SAMPLED = [("traceparent", f"00-{TRACE}-{SENDER}-00".encode())]
STEPS = {"prepare", "permit", "claim", "engine", "settle"}


class Recorded:
    """A core whose spans are kept in memory."""

    def __init__(self, sample_ratio: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        export = SimpleSpanProcessor(self._exporter)  # without the provider's private parts
        tracer = SpanTracer(provider, export, sample_ratio=sample_ratio, group_id="g")
        self.core = Core(tracer=tracer)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    @property
    def deliveries(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith("process ")]


@pytest.fixture(autouse=True)
def _no_trace_of_another_test() -> Iterator[None]:
    with structlog.contextvars.bound_contextvars():
        yield


def trace_of(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}"


def id_of(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    return f"{context.span_id:016x}"


def parent_of(span: ReadableSpan) -> str | None:
    return None if span.parent is None else f"{span.parent.span_id:016x}"


async def test_a_delivery_is_a_child_of_its_sender_and_its_steps_are_its_children() -> None:
    recorded = Recorded()
    recorded.core.consumer.append(record(), headers=SAMPLED)
    await recorded.core.run_all()
    [delivery] = recorded.deliveries
    assert parent_of(delivery) == SENDER
    assert {trace_of(span) for span in recorded.spans} == {TRACE}
    children = [span for span in recorded.spans if span is not delivery]
    assert {span.name for span in children} == STEPS | {"generate"}
    assert {parent_of(span) for span in children} == {id_of(delivery)}
    for span in children:
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time
    attributes: Any = delivery.attributes
    assert attributes["dragoman.job_id"] == "a1"
    assert attributes["dragoman.status"] == "completed"
    assert delivery.status.status_code is StatusCode.UNSET


async def test_the_result_names_the_worker_s_span() -> None:
    recorded = Recorded()
    recorded.core.consumer.append(record(), headers=SAMPLED)
    await recorded.core.run_all()
    [delivery] = recorded.deliveries
    result = recorded.core.state().result
    assert result is not None
    assert result.traceparent == f"00-{TRACE}-{id_of(delivery)}-01"


async def test_the_engine_s_own_span_is_a_child_of_the_generation() -> None:
    recorded = Recorded()
    recorded.core.consumer.append(record(), headers=SAMPLED)
    await recorded.core.run_all()
    [generation] = recorded.named("generate")
    [request] = recorded.core.engine.requests
    assert request.trace_headers == {"traceparent": f"00-{TRACE}-{id_of(generation)}-01"}
    attributes: Any = generation.attributes
    assert attributes["gen_ai.usage.output_tokens"] > 0


@pytest.mark.parametrize("ratio", [0.0, 1.0])
async def test_a_sender_that_does_not_record_is_followed(ratio: float) -> None:
    recorded = Recorded(ratio)
    recorded.core.consumer.append(record(), headers=NOT_SAMPLED)
    await recorded.core.run_all()
    assert recorded.spans == ()
    result = recorded.core.state().result
    assert result is not None
    assert result.traceparent == NOT_SAMPLED[0][1].decode()
    assert recorded.core.engine.requests[0].trace_headers is None


@pytest.mark.parametrize(("ratio", "deliveries"), [(0.0, 0), (1.0, 1)])
@pytest.mark.parametrize("headers", [[], [("traceparent", b"t")], SAMPLED * 2])
async def test_a_job_without_a_valid_trace_is_recorded_by_the_ratio(
    ratio: float, deliveries: int, headers: list[tuple[str, bytes | None]]
) -> None:
    recorded = Recorded(ratio)
    recorded.core.consumer.append(record(), headers=headers)
    await recorded.core.run_all()
    assert len(recorded.deliveries) == deliveries
    assert all(span.parent is None for span in recorded.deliveries)
    result = recorded.core.state().result
    assert result is not None
    assert (result.traceparent is not None) == bool(deliveries)


async def test_a_failed_job_is_an_error_with_its_code_and_without_any_text() -> None:
    recorded = Recorded()
    recorded.core.engine.script("SECRET words", PermanentEngineError("SECRET words"))
    recorded.core.consumer.append(
        record(text="SECRET words", metadata={"k": "SECRET"}), headers=SAMPLED
    )
    recorded.core.consumer.append(b'{"SECRET"', headers=SAMPLED)
    await recorded.core.run_all()
    assert {span.status.description for span in recorded.deliveries} == {
        "engine_failed",
        "invalid_job",
    }
    [generation] = recorded.named("generate")
    assert generation.status.status_code is StatusCode.ERROR
    assert "SECRET" not in "".join(span.to_json() for span in recorded.spans)


async def test_concurrent_deliveries_keep_their_traces_apart() -> None:
    recorded = Recorded()
    names = [f"{number:032x}" for number in range(1, 9)]
    for number, trace in enumerate(names):
        header = f"00-{trace}-{SENDER}-01".encode()
        items = ["one", "two", f"three {number}"]
        value = record(f"j{number}", text=items)
        recorded.core.consumer.append(value, headers=[("traceparent", header)])
    recorded.core.consumer.append(record("untraced"))
    await recorded.core.run_all()
    for trace, job in zip(names, (f"j{number}" for number in range(8)), strict=True):
        spans = [span for span in recorded.spans if trace_of(span) == trace]
        assert len([span for span in spans if span.name == "generate"]) == 3
        result = recorded.core.state(job).result
        assert result is not None
        assert str(result.traceparent).startswith(f"00-{trace}-")


async def test_a_delivery_that_is_not_finished_ends_its_span() -> None:
    recorded = Recorded()
    recorded.core.grace_s = 0.0
    recorded.core.engine.hold("one two")
    recorded.core.consumer.append(record(), headers=SAMPLED)
    async with recorded.core.working():
        await recorded.core.inside("one two")
    [delivery] = recorded.deliveries
    attributes: Any = delivery.attributes
    assert attributes["dragoman.outcome"] == "stopped"
    [generation] = recorded.named("generate")
    assert generation.status.description == "cancelled"


async def test_log_lines_of_a_job_have_the_trace_s_id_also_where_tracing_is_off() -> None:
    core = Core(tracer=Tracer(), log_jobs=True)
    core.engine.script("one two", PermanentEngineError("never"))
    core.consumer.append(record(), headers=NOT_SAMPLED)
    core.consumer.append(record("b1", text="fine"))
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as lines:
        await core.run_all()
    by_job = {line["job_id"]: line for line in lines if line["event"] == "job_ended"}
    assert by_job["a1"]["trace_id"] == TRACE
    assert by_job["a1"]["code"] == "engine_failed"
    assert "trace_id" not in by_job["b1"]
    assert by_job["b1"]["status"] == "completed"
    [rejected] = [line for line in lines if line["event"] == "rejected"]
    assert rejected["trace_id"] == TRACE


async def test_a_job_is_not_logged_unless_it_is_asked_for() -> None:
    core = Core()
    core.consumer.append(record())
    with structlog.testing.capture_logs() as lines:
        await core.run_all()
    assert "job_ended" not in {line["event"] for line in lines}


async def test_a_trace_is_that_of_its_own_task() -> None:
    assert tracing.current() is None

    async def traced() -> str | None:
        tracing.enter(tracing.Trace(SAMPLED[0][1].decode()))
        trace = tracing.current()
        return None if trace is None else trace.traceparent

    assert await asyncio.create_task(traced()) == SAMPLED[0][1].decode()
    assert tracing.current() is None
