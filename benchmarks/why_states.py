"""Check that `dragoman-worker why` names each limit, with the real engine held in that state.

usage: why_states.py --model DIR [--small-model DIR] [--profile chat] [--services real|embedded]
       [--options '{"load_format": "dummy"}'] [--batch 512] [--out rows.json]
on a CPU: --model demo/model --profile demo --batch 48
          --tokens 24 --long-tokens 300 --prompt-tokens 40
          --options '{"max_model_len": 512, "enforce_eager": true, "gpu_memory_utilization": 0.2}'

Three workers, of which the second starts while the first is measured:
  16 sequences and a KV cache for twice their short texts: with short texts `sequences`, with texts
    that need ten times as much `kv_cache`;
  `--batch` sequences: `queue_empty` before there are jobs, `compute` with a backlog, `feed` when
    Redis then stalls (CLIENT PAUSE WRITE);
  the small model, one engine, 1,024 sequences: `engine_cpu`. Only where NVML finds a GPU.
Lengths are exact, so random weights do. Each state is given time to fill the window by which a
worker judges, and `why` runs once. Exit status 1 if any is named otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis.asyncio
from job_groups import made
from pipeline import DEAD, exact_lengths, services
from worker_process import Worker, working

from dragoman_producer import TranslationClient
from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.tuning.why import LimitsReport, NoAnswer, ask

SETTLE_S = 13.0
"""The window is 10 s, and the first sequences take a while to run."""
BLOCK = 32
"""vLLM on CPUs takes multiples of it."""
WORDS = 60
GPU_OPTIONS = {
    "load_format": "dummy",
    "generation_config": "vllm",
    "max_num_batched_tokens": 8192,
    "max_model_len": 2048,
    "gpu_memory_utilization": 0.05,  # of what no cache in bytes says
}
CACHE_GIB = {"few": 4, "many": 32, "small": 48}
"""Room for 16, 512 and 1,024 sequences of Qwen3's shapes, so that no cache is the limit."""


@dataclass
class Bench:
    """Topic of the jobs, and the causes that were named."""

    kafka: str
    redis: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    draw: random.Random = field(default_factory=lambda: random.Random(7))

    async def publish(self, topic: str, document: str, count: int, tokens: int) -> None:
        """Publish jobs of the given tokens as one document, so that they can be cancelled."""
        async with TranslationClient(self.kafka, self.redis, topic) as client:
            async for _ in client.submit_many(made(document, [tokens] * count, WORDS, self.draw)):
                pass

    async def cancel(self, document: str) -> None:
        async with TranslationClient(self.kafka, self.redis) as client:
            await client.cancel(document_id=document)

    async def state(self, expected: str, worker: Worker, how: str) -> None:
        """Wait until the state is steady, run `why` once, and record the named cause."""
        await asyncio.sleep(SETTLE_S)
        try:
            report: LimitsReport = await asyncio.to_thread(ask, f"http://127.0.0.1:{worker.port}")
        except NoAnswer as error:
            named: dict[str, Any] = {"cause": None, "sentence": str(error)}
        else:
            named = report.as_json()
            del named["replicas"]
        row = {"state": expected, "how": how, "right": named["cause"] == expected, **named}
        self.rows.append(row)
        word = "ok   " if row["right"] else "WRONG"
        print(f"{word} {expected:12} named {named['cause']}: {named['sentence']}", flush=True)


async def few_sequences(given: argparse.Namespace, bench: Bench, worker: Worker) -> None:
    """Run short texts, then long ones in the same engine."""
    topic = worker.settings["kafka.topics"][0]
    await bench.publish(topic, "short", given.jobs, given.tokens)
    how = f"16 sequences, texts of {given.tokens} tokens"
    await bench.state("sequences", worker, how)
    await bench.cancel("short")
    await bench.publish(topic, "long", 400, given.long_tokens)
    how = f"the same, texts of {given.long_tokens} tokens, a cache of {_small_cache(given)} tokens"
    await bench.state("kv_cache", worker, how)


async def many_sequences(given: argparse.Namespace, bench: Bench, worker: Worker) -> None:
    """Run no jobs, a backlog, and a backlog behind a Redis that stalls."""
    topic = worker.settings["kafka.topics"][0]
    await bench.state("queue_empty", worker, "no jobs")
    await bench.publish(topic, "backlog", 5 * given.jobs, given.tokens)
    await bench.state("compute", worker, f"{given.batch} sequences")
    async with redis.asyncio.Redis.from_url(bench.redis) as store:
        await store.client_pause(60_000, all=False)
        await bench.state("feed", worker, "Redis stalls: CLIENT PAUSE WRITE")
        await store.client_unpause()


async def small_model(given: argparse.Namespace, bench: Bench, worker: Worker) -> None:
    await bench.publish(worker.settings["kafka.topics"][0], "small", 8 * given.jobs, given.tokens)
    await bench.state("engine_cpu", worker, "one engine, 1,024 sequences")


@asynccontextmanager
async def _told(worker: Worker, timeout_s: float) -> AsyncIterator[None]:
    async with working(worker, timeout_s) as start_s:
        print(f"# {worker.name} ready after {start_s:.1f} s", flush=True)
        yield


async def measure(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    topics = ["dragoman.why-few", "dragoman.why-many", "dragoman.why-small"]
    async with AsyncExitStack() as stack:
        kafka, url, _ = await stack.enter_async_context(services(given.services, topics))
        bench = Bench(kafka, url)
        few, many, small = (
            Worker(topic.rpartition("-")[2], _settings(given, kafka, url, topic), folder)
            for topic in topics
        )
        if _gpu():
            for worker in (few, many, small):
                size = CACHE_GIB[worker.name] * 1024**3
                worker.settings |= _options({"kv_cache_memory_bytes": size})
        blocks = _small_cache(given) // BLOCK
        few.settings |= _options(
            {"max_num_seqs": 16, "block_size": BLOCK, "num_gpu_blocks_override": blocks}
        )
        many.settings |= _options({"max_num_seqs": given.batch})
        for worker in (few, many, small):
            stack.callback(worker.end)
        async with _told(few, given.start_s):
            if given.services == "embedded" and _gpu():  # a CPU engine has no core to spare
                many.start()
            await few_sequences(given, bench, few)
        async with _told(many, given.start_s):
            await many_sequences(given, bench, many)
        if given.small_model and _gpu():
            small.settings |= {"engine.model": given.small_model}
            small.settings |= _options({"max_num_seqs": 1024})
            async with _told(small, given.start_s):
                await small_model(given, bench, small)
        else:
            print("# engine_cpu: not without a GPU and --small-model", flush=True)
    return bench.rows


def _settings(given: argparse.Namespace, kafka: str, url: str, topic: str) -> dict[str, Any]:
    return {
        "kafka.bootstrap_servers": kafka,
        "kafka.topics": [topic],
        "kafka.group_id": topic,
        "kafka.dead_letter_topic": DEAD,
        "redis.url": url,
        "engine.kind": "vllm",
        "engine.model": given.model,
        "engine.profile": given.profile,
        **exact_lengths(True),
        "quality.level": "off",
        **_options(given.options),
    }


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {f"engine.options.{name}": value for name, value in options.items()}


def _small_cache(given: argparse.Namespace) -> int:
    """Return twice the tokens of 16 short texts, and at least the longest context."""
    wanted: int = max(
        2 * 16 * (given.prompt_tokens + given.tokens), given.options.get("max_model_len", 0) + BLOCK
    )
    return -(-wanted // BLOCK) * BLOCK


def _gpu() -> bool:
    gpus = Gpus(1)
    try:
        return gpus.open()
    finally:
        gpus.close()


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line per state, for docs/explanation/benchmarks-gpu.md."""
    lines = ["| held in | named | by these numbers | to change |", "|---|---|---|---|"]
    for row in rows:
        sentence, change = row["sentence"], row.get("change", "")
        lines.append(f"| {row['state']} ({row['how']}) | {row['cause']} | {sentence} | {change} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--small-model")
    parser.add_argument("--profile", default="chat")
    parser.add_argument("--options", type=json.loads, default=GPU_OPTIONS)
    parser.add_argument("--services", choices=("real", "embedded"), default="embedded")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=85)
    parser.add_argument("--prompt-tokens", type=int, default=160, help="about, of 60 words")
    parser.add_argument("--long-tokens", type=int, default=1_500)
    parser.add_argument("--jobs", type=int, default=900)
    parser.add_argument("--start-s", type=float, default=300.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        rows = asyncio.run(measure(given, Path(folder)))
    print(table(rows))
    report = {"model": Path(given.model).name, "options": given.options, "states": rows}
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"# {time.monotonic() - began:.0f} s")
    sys.exit(0 if all(row["right"] for row in rows) else 1)


if __name__ == "__main__":
    main()
