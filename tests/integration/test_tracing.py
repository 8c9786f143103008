"""One trace leads from a submission through worker and engine to the result or the dead letter."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dragoman_connections.settings import DragomanSettings
from dragoman_producer import TranslationClient
from dragoman_schemas.jobs import TranslationJob
from support.processes.forked_command import run_forked
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import read_all
from support.services.redis_server import RedisServer
from support.services.span_receiver import ReceivedSpan, SpanReceiver

TOPIC = "traced"
PATIENCE_S = 60.0

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with SpanReceiver() as receiving:
        yield receiving


async def test_one_trace_from_the_submission_to_the_result_and_to_the_dead_letter(
    kafka: KafkaBroker, redis_server: RedisServer, receiver: SpanReceiver, tmp_path: Path
) -> None:
    for name in (TOPIC, f"{TOPIC}-dead", f"{TOPIC}-results"):
        kafka.create_topic(name)
    shared = {
        "kafka.bootstrap_servers": kafka.bootstrap,
        "redis.url": redis_server.url,
        "tracing.enabled": True,
        "tracing.endpoint": receiver.endpoint,
    }
    own = {**shared, "kafka.results_topic": f"{TOPIC}-results", "log.jobs": True}
    with ForkedWorker(
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        topic=TOPIC,
        settings=own,
    ) as worker:
        worker.ready(PATIENCE_S)
        await _submit(kafka, redis_server, receiver)
        status = run_forked(
            "dragoman",
            *("submit", "--to", "de", "--id", "by-command", "SECRET words"),
            env={**os.environ, **_environment(shared)},
            timeout_s=PATIENCE_S,
        )
        assert status.returncode == 0, status.stderr

        def all_deliveries() -> bool:
            return sum(span.name == f"process {TOPIC}" for span in receiver.spans) == 3

        worker.wait_for(all_deliveries, timeout_s=PATIENCE_S, what="three deliveries")
        lines = [line for line in worker.output.splitlines() if '"job_ended"' in line]
        logged = {line["job_id"]: line["trace_id"] for line in map(json.loads, lines)}
    for job_id in ("fine", "by-command", "failing"):
        trace_id = logged[job_id]
        sent, delivery = _line_of_parents(receiver.of(trace_id))
        assert sent.attributes["dragoman.job_id"] == job_id
        assert delivery.attributes["dragoman.job_id"] == job_id
        assert delivery.failed == (job_id == "failing")
        _check_records(kafka, redis_server, job_id, trace_id, delivery.span_id)
    assert "SECRET" not in str(receiver.spans)


async def _submit(kafka: KafkaBroker, server: RedisServer, receiver: SpanReceiver) -> None:
    settings = DragomanSettings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka.bootstrap, "topics": TOPIC},
            "redis": {"url": server.url},
            "tracing": {"enabled": True, "endpoint": receiver.endpoint},
        }
    )
    texts = {"fine": "SECRET words", "failing": "#!fatal\nSECRET words"}
    jobs = [TranslationJob(job_id=name, text=texts[name], target_lang="de") for name in texts]
    async with TranslationClient(settings=settings) as client:
        async for handle in client.submit_many(jobs):
            await handle.result(timeout_s=PATIENCE_S)


def _environment(settings: dict[str, object]) -> dict[str, str]:
    names = {name: name.upper().replace(".", "__") for name in settings}
    given = {f"DRAGOMAN_{names[name]}": str(value) for name, value in settings.items()}
    return {**given, "DRAGOMAN_KAFKA__TOPICS": TOPIC}


def _line_of_parents(spans: list[ReceivedSpan]) -> tuple[ReceivedSpan, ReceivedSpan]:
    """Check the tree of one trace; return the submission's and the delivery's span."""
    [sent] = [span for span in spans if span.name == f"send {TOPIC}"]
    [delivery] = [span for span in spans if span.name == f"process {TOPIC}"]
    rest = [span for span in spans if span not in (sent, delivery)]
    assert (sent.service, delivery.service) == ("dragoman", "dragoman-worker")
    assert (sent.parent_id, delivery.parent_id) == ("", sent.span_id)
    assert {span.parent_id for span in rest} == {delivery.span_id}
    assert {span.name for span in rest} == {
        *("prepare", "permit", "claim", "engine", "generate", "settle")
    }
    return sent, delivery


def _check_records(
    kafka: KafkaBroker, server: RedisServer, job_id: str, trace_id: str, span_id: str
) -> None:
    own = f"00-{trace_id}-{span_id}-01"
    with redis.Redis.from_url(server.url) as client:
        stored = json.loads(client.hget(f"dragoman:job:{job_id}", "result") or "{}")
    assert stored["traceparent"] == own
    published = [
        record
        for record in read_all(kafka.bootstrap, f"{TOPIC}-results", 1)
        if json.loads(record.value or b"{}")["job_id"] == job_id
    ]
    assert {record.headers["traceparent"] for record in published} == {own}
    letters = [
        record.headers["traceparent"]
        for record in read_all(kafka.bootstrap, f"{TOPIC}-dead", 1)
        if record.headers["x-job-id"] == job_id
    ]
    assert [letter.split("-")[1] for letter in letters] == [trace_id] * (job_id == "failing")


async def test_a_collector_that_is_down_costs_spans_and_no_job(
    kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    for name in ("untold", "untold-dead"):
        kafka.create_topic(name)
    settings = {"tracing.enabled": True, "tracing.endpoint": "http://127.0.0.1:9"}
    with ForkedWorker(
        tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic="untold", settings=settings
    ) as worker:
        worker.ready(PATIENCE_S)
        given = DragomanSettings.model_validate(
            {
                "kafka": {"bootstrap_servers": kafka.bootstrap, "topics": "untold"},
                "redis": {"url": redis_server.url},
                "tracing": {"enabled": True, "endpoint": "http://127.0.0.1:9"},
            }
        )
        async with TranslationClient(settings=given) as client:
            job = TranslationJob(job_id="untold-1", text="A text.", target_lang="de")
            handle = await client.submit(job)
            assert await handle.text(timeout_s=PATIENCE_S) == "[de] A text."
        worker.terminate()
        assert worker.wait(timeout_s=PATIENCE_S) == 0
