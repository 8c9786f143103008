"""A worker whose engine is the real server of llama.cpp: every text, and every parameter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.ports import Decoding, Generation, GenerationRequest
from dragoman_worker.prompts.base import completed
from support.builders.engine_requests import a_request
from support.builders.openai_engines import started
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.llama_server import LlamaServer
from support.services.plain_clients import ended, publish
from support.services.redis_server import RedisServer

PAIRS = Path(__file__).parents[2] / "demo" / "training" / "test.jsonl"
COUNT = 120

pytestmark = pytest.mark.usefixtures("llama_installed")


@pytest.fixture(scope="module")
def demo_server(
    llama_installed: None, demo_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LlamaServer]:
    folder = tmp_path_factory.mktemp("llama-demo")
    with LlamaServer(demo_model, folder, slots=4, context=512) as server:
        yield server


def jobs(prefix: str) -> list[dict[str, Any]]:
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [
        {"job_id": f"{prefix}{number}", "text": pair["source"], "target_lang": pair["target_lang"]}
        for number, pair in enumerate(pairs[:COUNT])
    ]


@pytest.fixture
def new_worker(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: Callable[..., str],
    demo_server: LlamaServer,
    tmp_path: Path,
) -> Callable[..., ForkedWorker]:
    def make(name: str, **more: Any) -> ForkedWorker:
        records = topic(partitions=2)
        kafka.create_topic(f"{records}-dead", 1)
        given = {
            "engine.kind": "openai",
            "engine.url": demo_server.url,
            "engine.profile": "demo",
            "quality.level": "off",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        return ForkedWorker(
            tmp_path,
            kafka=kafka.bootstrap,
            redis=redis_server.url,
            topic=records,
            name=name,
            settings=given,
        )

    return make


@pytest.mark.timeout(900)
def test_every_text_is_translated_and_alike_whether_it_is_sent_as_ids_or_as_text(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    demo_model: Path,
    new_worker: Callable[..., ForkedWorker],
) -> None:
    answers = []
    for name, more in (("ids", {"engine__tokenizer": str(demo_model)}), ("text", {})):
        worker, given = new_worker(name, **more), jobs(name)
        with worker, redis.Redis.from_url(redis_server.url) as client:
            worker.ready(120)
            publish(kafka.bootstrap, worker.settings["kafka.topics"][0], given)
            results = [ended(client, job["job_id"], timeout_s=300) for job in given]
            assert {each["status"] for each in results} == {"completed"}
            assert worker.metric("dragoman_retries_total") == 0
            assert worker.metric("dragoman_dead_letters_total") == 0
        answers.append([each["result"]["translations"][0]["text"] for each in results])
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > COUNT / 2


async def test_each_parameter_is_heeded_or_fails_the_job(
    demo_server: LlamaServer, demo_model: Path
) -> None:
    source = "The man sees the man and the man sees the man."
    given = {"model": None, "profile": "demo", "tokenizer": str(demo_model)}
    async with started(demo_server, **given) as engine:
        assert engine.limits.max_num_seqs == 4
        assert engine.limits.max_model_len == 512
        assert engine.info.version.startswith("llama.cpp ")

        async def answer(**decoding: Any) -> Generation:
            prompt = completed("<|de|>", source, "<|translation|>")
            asked = Decoding(max_tokens=40, **decoding)
            return await engine.generate(
                GenerationRequest("job", engine.encode(prompt), asked, source, "de", 1)
            )

        plain = await answer()
        assert (plain.finish_reason, plain.completion_tokens > 8) == ("stop", True)
        assert (await answer(repetition_penalty=3.0)).text != plain.text
        assert (await answer(stop=(" ",))).text == plain.text.split()[0]
        drawn = [(await answer(temperature=1.5, seed=seed)).text for seed in (1, 1, 2, 3, 4)]
        assert drawn[0] == drawn[1]
        assert len(set(drawn)) > 1
        with pytest.raises(PermanentEngineError, match="stop_token_ids"):
            await answer(stop_token_ids=(29,))


async def test_slots_that_share_one_context_lose_and_cut_no_answer(
    demo_model: Path, tmp_path: Path
) -> None:
    with LlamaServer(demo_model, tmp_path, slots=4, context=256, shared=True) as server:
        given = {"profile": "demo", "tokenizer": str(demo_model), "exact_lengths": True}
        async with started(server, model=None, **given) as engine:
            asked = Decoding(max_tokens=150)  # two of them do not fit
            requests = [a_request(engine, f"Number {n}.", decoding=asked) for n in range(3)]
            made = await asyncio.gather(*(engine.generate(each) for each in requests))
    assert {each.completion_tokens for each in made} == {150}
