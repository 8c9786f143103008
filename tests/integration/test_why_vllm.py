"""`why` names the limits of the real engine on a CPU, reached by settings and jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.builders.engine_requests import ONE_PROCESS
from support.processes.forked_command import run_forked
from support.processes.waiting import wait_until
from support.processes.why import is_named, named
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]
OpenBench = Callable[..., AbstractContextManager["Bench"]]
SETTINGS = {
    "engine.kind": "vllm",
    "engine.profile": "demo",
    "engine.exact_lengths": True,
    "engine.options.max_model_len": 512,
    "engine.options.enforce_eager": True,
    "engine.options.enable_prefix_caching": False,
    "engine.options.distributed_executor_backend": ONE_PROCESS,
    "engine.options.gpu_memory_utilization": 0.2,  # other processes need memory as well
    "quality.level": "off",
}
READY_S = 420.0  # vLLM starts in 20 s on two quiet cores, and in minutes on busy ones
SHORT, LONG = 24, 300

pytestmark = [pytest.mark.vllm, pytest.mark.kafka, pytest.mark.redis, pytest.mark.timeout(900)]


class Bench:
    """A worker on its own topic, and jobs with a given number of tokens."""

    def __init__(self, worker: ForkedWorker, kafka: str, redis: str, topic: str) -> None:
        self.worker = worker
        self._where = ("--kafka", kafka, "--redis", redis)
        self._topic = topic

    def give(self, document: str, count: int, tokens: int) -> None:
        """Publish more jobs than the worker completes during the measurement."""
        jobs = [job(f"{self._topic}-{document}", n, count, tokens) for n in range(count)]
        publish(self._where[1], self._topic, jobs)

    def cancel_rest(self, document: str) -> None:
        """Cancel the remaining jobs."""
        name = f"{self._topic}-{document}"
        asked = run_forked("dragoman", "cancel", "--document", name, *self._where)
        assert asked.returncode == 0, asked.stderr


@pytest.fixture
def working(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: MakeTopic,
    demo_model: Path,
    tmp_path: Path,
) -> OpenBench:
    """Return a function that opens a bench with these engine options."""

    @contextmanager
    def work(**options: int) -> Iterator[Bench]:
        name = topic(partitions=1)
        kafka.create_topic(f"{name}-dead", 1)
        engine = {f"engine.options.{option}": value for option, value in options.items()}
        worker = ForkedWorker(
            tmp_path,
            kafka=kafka.bootstrap,
            redis=redis_server.url,
            topic=name,
            settings={**SETTINGS, **engine, "engine.model": str(demo_model)},
        )
        with worker:
            worker.ready(READY_S)
            yield Bench(worker, kafka.bootstrap, redis_server.url, name)

    return work


def job(document: str, number: int, count: int, tokens: int) -> dict[str, Any]:
    return {
        "job_id": f"{document}{number}",
        "text": "Good morning! " * (tokens // 15),  # about as long as its translation
        "source_lang": "en",
        "target_lang": "de",
        "sampling": {"max_tokens": tokens},
        "document": {"document_id": document, "index": number, "total": count},
    }


def test_short_texts_are_limited_by_compute_and_long_ones_by_the_cache(working: OpenBench) -> None:
    """48 sequences in 4,096 tokens: all short ones fit, and a quarter of the long ones."""
    options = {"max_num_seqs": 48, "block_size": 32, "num_gpu_blocks_override": 128}
    with working(**options) as bench:
        bench.give("short", 9_000, SHORT)
        answer = is_named(bench.worker, "compute", settle_s=90)
        assert "two limits are one" in answer["sentence"]
        bench.give("long", 1_000, LONG)
        bench.cancel_rest("short")
        answer = is_named(bench.worker, "kv_cache", settle_s=120)
        assert "kv_cache_memory_bytes" in answer["change"]

        def fewer_run() -> bool:
            """Return whether the window holds only long ones."""
            answer = named(bench.worker)
            return (
                answer["cause"] == "kv_cache"
                and answer["numbers"]["running"] < options["max_num_seqs"] / 2
                and bench.worker.metric("dragoman_engine_waiting") <= 24
            )

        wait_until(fewer_run, timeout_s=120, what="fewer in the engine, and never many waiting")
