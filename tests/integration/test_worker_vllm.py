"""A worker translates real text with a real engine and survives a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, job, publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
PAIRS = Path(__file__).parents[2] / "demo" / "training" / "test.jsonl"
SETTINGS = {
    "engine.kind": "vllm",
    "engine.profile": "demo",
    "engine.options.max_num_seqs": 64,
    "engine.options.max_model_len": 512,
    "engine.options.enforce_eager": True,
}
READY_S = 240.0  # vLLM starts in 20 s on two quiet cores, and in minutes on busy ones

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]


@pytest.fixture
def new_worker(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: MakeTopic,
    demo_model: Path,
    tmp_path: Path,
) -> Callable[[str], WorkerProcess]:
    """Return a function that makes workers of one group on one topic."""
    name = topic(partitions=4)
    kafka.create_topic(f"{name}-dead", 1)

    def make(worker: str) -> WorkerProcess:
        return WorkerProcess(
            tmp_path,
            kafka=kafka.bootstrap,
            redis=redis_server.url,
            topic=name,
            name=worker,
            settings={**SETTINGS, "engine.model": str(demo_model)},
        )

    make.topic = name  # type: ignore[attr-defined]
    return make


def real_jobs(count: int) -> list[dict[str, Any]]:
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [
        {"job_id": f"r{number}", "text": pair["source"], "target_lang": pair["target_lang"]}
        for number, pair in enumerate(pairs[:count])
    ]


LONG = "This sentence is about the weather in the north of the country. " * 60


def test_real_text_is_translated_and_a_kill_loses_nothing(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    new_worker: Callable[[str], WorkerProcess],
) -> None:
    topic: str = new_worker.topic  # type: ignore[attr-defined]
    jobs = real_jobs(600)
    publish(kafka.bootstrap, topic, jobs)
    with redis.Redis.from_url(redis_server.url) as client:
        with new_worker("first") as first:
            first.ready(READY_S)
            wait_until(lambda: job(client, "r40").get("result"), timeout_s=60, what="some results")
            engine = psutil.Process(first.pid).children(recursive=True)
            first.kill()
            done_before = {
                each["job_id"]: fields
                for each in jobs
                if "result" in (fields := job(client, each["job_id"]))
            }
            wait_until(
                lambda: not any(process.is_running() for process in engine),
                timeout_s=20,
                what="the engine ends with its worker",
            )
        assert 0 < len(done_before) < len(jobs)
        publish(kafka.bootstrap, topic, odd_jobs())
        with new_worker("second") as second:
            second.ready(READY_S)
            for each in jobs:
                assert ended(client, each["job_id"], 120)["status"] == "completed"
            assert {name: job(client, name) for name in done_before} == done_before
            check_odd(client)
            wait_until(
                lambda: len(set(committed(kafka.bootstrap, f"{topic}-group", topic, 4))) == 1,
                timeout_s=20,
                what="everything is committed",
            )


def odd_jobs() -> list[dict[str, Any]]:
    german = {"target_lang": "de", "source_lang": "en"}
    return [
        {"job_id": "greeting", "text": "Good morning!", **german},
        {"job_id": "long", "text": LONG, **german},
        {"job_id": "too-long", "text": ["Good morning!", "x" * 6000], **german},
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
    assert (greeting["finish_reason"], greeting["quality"]) == ("stop", "unchecked")
    assert greeting["usage"]["completion_tokens"] > 0
    assert found["long"]["status"] == "completed", "split between sentences"
    assert results["long"]["translations"][0]["text"].count(".") >= 55
    assert found["too-long"]["status"] == "failed"
    short, long = results["too-long"]["translations"]
    assert short["text"] == "Guten Morgen!", "a failed job keeps the items that succeeded"
    assert long["error"]["code"] == "too_long"
    assert "512" in long["error"]["message"]
    assert found["control"]["status"] in {"completed", "failed"}
    assert found["language"]["status"] == "failed"
    assert results["language"]["error"]["code"] == "unsupported_language"
    texts = [item["text"] for item in results["nothing"]["translations"]]
    assert texts == ["", "  ", "12 34", "🙂"]
    assert any("formality" in text for text in results["formal"]["translations"][0]["warnings"])
    assert results["formal"]["profile"] == "demo"
    assert results["formal"]["engine"]["name"] == "vllm"
