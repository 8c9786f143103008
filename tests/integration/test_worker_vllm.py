"""A worker translates real text with a real engine; a kill loses nothing and leaves no engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from support.builders.engine_requests import PATCHES, gone
from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import (
    committed,
    ended,
    job,
    publish,
    publish_with_headers,
)
from support.services.redis_server import RedisServer
from support.services.span_receiver import ReceivedSpan, SpanReceiver

MakeTopic = Callable[..., str]
PAIRS = Path(__file__).parents[2] / "demo" / "training" / "test.jsonl"
SETTINGS = {
    "engine.kind": "vllm",
    "engine.profile": "demo",
    "engine.options.max_num_seqs": 64,
    "engine.options.max_model_len": 512,
    "engine.options.enforce_eager": True,
}
PARTITIONS = 4
READY_S = 240.0  # vLLM starts in 20 s on two quiet cores, and in minutes on busy ones

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with SpanReceiver() as receiving:
        yield receiving


@pytest.fixture
def worker(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: MakeTopic,
    demo_model: Path,
    receiver: SpanReceiver,
    tmp_path: Path,
) -> WorkerProcess:
    """Return a worker on its own topic, to be started by the test.

    vLLM has a process of its own beside the engine's, as with several GPUs. Only jobs that their
    sender records are recorded.
    """
    name = topic(partitions=PARTITIONS)
    kafka.create_topic(f"{name}-dead", 1)
    return WorkerProcess(
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        topic=name,
        settings={
            **SETTINGS,
            "engine.model": str(demo_model),
            "tracing.enabled": True,
            "tracing.endpoint": receiver.endpoint,
            "tracing.sample_ratio": 0,
        },
    )


def real_jobs(count: int) -> list[dict[str, Any]]:
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [
        {"job_id": f"r{number}", "text": pair["source"], "target_lang": pair["target_lang"]}
        for number, pair in enumerate(pairs[:count])
    ]


TRACE_ID = "a" * 32
TRACED = {"job_id": "traced", "text": "Where do you live?", "target_lang": "de"}
LONG = "This sentence is about the weather in the north of the country. " * 60


def test_real_text_is_translated_and_each_engine_is_gone_with_its_killed_replica(
    kafka: KafkaBroker, redis_server: RedisServer, worker: WorkerProcess, receiver: SpanReceiver
) -> None:
    """A killed replica and later the killed worker leave no engine, and no job is lost.

    One job is traced: vLLM's span belongs to its trace. No other job has spans.
    """
    (topic,) = worker.settings["kafka.topics"]
    jobs = real_jobs(600)
    publish(kafka.bootstrap, topic, jobs)
    with worker, redis.Redis.from_url(redis_server.url) as client:
        worker.ready(READY_S)
        wait_until(lambda: job(client, "r40").get("result"), timeout_s=60, what="some results")
        replica, engine = replica_and_engine(worker)
        for process in engine:
            process.suspend()  # none may end by itself
        replica.kill()
        [successor] = worker.wait_for(
            lambda: [one for one in worker.replicas() if one != replica],
            timeout_s=30,
            what="a successor",
        )
        assert not any(process.is_running() for process in engine)
        assert successor.is_running()
        ids = [each["job_id"] for each in jobs]
        done_before = {name: fields for name in ids if "result" in (fields := job(client, name))}
        assert 0 < len(done_before) < len(jobs)

        publish(kafka.bootstrap, topic, odd_jobs())
        header = f"00-{TRACE_ID}-{'b' * 16}-01".encode()
        publish_with_headers(kafka.bootstrap, topic, TRACED, [("traceparent", header)])
        for name in ids:
            assert ended(client, name, READY_S)["status"] == "completed"
        assert {name: job(client, name) for name in done_before} == done_before
        check_odd(client)
        usage = ended(client, "traced", 120)["result"]["translations"][0]["usage"]
        check_spans(receiver, usage)
        wait_until(
            lambda: len(set(committed(kafka.bootstrap, f"{topic}-group", topic, PARTITIONS))) == 1,
            timeout_s=20,
            what="everything is committed",
        )
        _, engine = replica_and_engine(worker)
        worker.kill()
        gone(engine)


def check_spans(receiver: SpanReceiver, usage: dict[str, int]) -> None:
    """Check that vLLM's span is the child of the only generation of the traced job."""

    def all_three() -> dict[str, ReceivedSpan]:
        spans = {span.name.split()[0]: span for span in receiver.of(TRACE_ID)}
        return spans if spans.keys() >= {"process", "generate", "llm_request"} else {}

    spans = wait_until(all_three, timeout_s=60, what="vLLM's span and the job's")
    of_vllm = spans["llm_request"]
    assert of_vllm.parent_id == spans["generate"].span_id
    assert of_vllm.attributes["gen_ai.usage.completion_tokens"] == usage["completion_tokens"]
    assert of_vllm.attributes["gen_ai.usage.prompt_tokens"] == usage["prompt_tokens"]
    recorded = [
        span for span in receiver.spans if span.name.startswith(("process ", "llm_request"))
    ]
    assert [span.trace_id for span in recorded] == [TRACE_ID] * 2


def replica_and_engine(worker: WorkerProcess) -> tuple[psutil.Process, list[psutil.Process]]:
    [replica] = worker.replicas()
    assert "fork-server" not in replica.cmdline(), "it has a name of its own"
    started = "dragoman_worker" in replica.cmdline()
    assert started == (PATCHES == "off"), "it has been forked, if vLLM may be changed"
    engine = replica.children(recursive=True)
    assert any("VLLM" in process.name() for process in engine)
    return replica, engine


def odd_jobs() -> list[dict[str, Any]]:
    german = {"target_lang": "de", "source_lang": "en"}
    return [
        {"job_id": "greeting", "text": "Good morning!", **german},
        {"job_id": "long", "text": LONG, **german},
        {"job_id": "uncut", "text": ["Good morning!", "x" * 6000], **german},
        {"job_id": "control", "text": "Good <|end|> morning, <|ja|> Tom!", **german},
        {"job_id": "language", "text": "Good morning!", "target_lang": "it"},
        {"job_id": "nothing", "text": ["", "  ", "12 34", "🙂"], **german},
        {"job_id": "formal", "text": "Good morning!", "formality": "more", **german},
    ]


def check_odd(client: redis.Redis) -> None:
    """Check each odd job against the table of invalid input of the issue."""
    found = {each["job_id"]: ended(client, each["job_id"], 120) for each in odd_jobs()}
    results = {name: fields["result"] for name, fields in found.items()}
    (greeting,) = results["greeting"]["translations"]
    assert greeting["text"] == "Guten Morgen!"
    assert greeting["quality"] == "ok"
    generated = not greeting["cached"]  # or for the job "formal", which asks the same
    assert (greeting["finish_reason"] == "stop", greeting["attempts"] == 1) == (generated,) * 2
    assert (greeting["usage"]["completion_tokens"] > 0) == generated
    assert found["long"]["status"] == "completed", "split between sentences"
    assert results["long"]["translations"][0]["text"].count(".") >= 55
    assert found["uncut"]["status"] == "completed"
    short, long = results["uncut"]["translations"]
    assert (short["text"], long["text"]) == ("Guten Morgen!", "x" * 6000)
    assert [warning.split(":")[0] for warning in long["warnings"]] == ["uncut"]
    assert found["control"]["status"] in {"completed", "failed"}
    assert found["language"]["status"] == "failed"
    assert results["language"]["error"]["code"] == "unsupported_language"
    texts = [item["text"] for item in results["nothing"]["translations"]]
    assert texts == ["", "  ", "12 34", "🙂"]
    assert any("formality" in text for text in results["formal"]["translations"][0]["warnings"])
    assert results["formal"]["profile"] == "demo"
    assert results["formal"]["engine"]["name"] == "vllm"
