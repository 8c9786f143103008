"""Drivers that hand jobs to each strategy, and time when a job is handed over and answered."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from children import decoding_fields
from residents import Child, Dragoman, Resident, Serve, as_flags, run_batch_command
from work import Batch, Work

from dragoman_producer import TranslationClient
from dragoman_producer.handle import JobHandle
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import TranslationResult

Row = dict[str, Any]


def timed_by_child(child: Child, how: str, batch: Batch, given: Row) -> Row:
    """Return a run that the child times itself."""
    loaded(child, batch)
    child.send("run", how, given)
    return child.answer()


def loaded(child: Child, batch: Batch) -> None:
    child.send("load", str(batch.path))
    child.answer()


# --- behind a multiprocessing queue ---------------------------------------------------------------


def behind_a_queue(workers: Sequence[Child], batch: Batch, given: Row) -> Row:
    """Keep one job per client under way; the workers read one queue."""
    tasks, answers = workers[0].setting.tasks, workers[0].setting.answers
    jobs, clients = given["jobs"], given["clients"]
    for worker in workers:
        loaded(worker, batch)
    for worker in workers:
        worker.send("run", "queue", given)
    start = time.time()
    handed_over: dict[int, float] = {}
    latencies: list[float] = []
    for number in range(min(clients, jobs)):
        handed_over[number] = time.perf_counter()
        tasks.put(number)
    while len(latencies) < jobs:
        number, _ = answers.get(timeout=300)
        latencies.append(time.perf_counter() - handed_over[number])
        following = len(handed_over)
        if following < jobs:
            handed_over[following] = time.perf_counter()
            tasks.put(following)
    end = time.time()
    for _ in workers:
        tasks.put(None)
    written = sum(worker.answer()["tokens"] for worker in workers)
    return {"start": start, "end": end, "latencies": latencies, "tokens": written}


# --- the Dragoman pipeline ------------------------------------------------------------------------


async def through_dragoman(resident: Dragoman, batch: Batch, given: Row, tag: str) -> Row:
    """Publish to Kafka all at once, or by `clients` that wait for their result in Redis."""
    jobs = [_as(job, f"{tag}-{job.job_id}") for job in batch.jobs[: given["jobs"]]]
    setting = resident.setting
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(TranslationClient(setting.kafka, setting.redis, topic))
            for topic in resident.topics[: resident.active]
        ]
        if given.get("clients"):
            return await _closed_loop(clients[0], jobs, given["clients"])
        return await _backlog(clients, jobs)


async def _backlog(clients: list[TranslationClient], jobs: list[TranslationJob]) -> Row:
    start = time.time()
    shares = [jobs[number :: len(clients)] for number in range(len(clients))]
    handed = [_submitted(*pair) for pair in zip(clients, shares, strict=True)]
    handles = [handle for share in await asyncio.gather(*handed) for handle in share]
    published = time.time()
    results = [await handle.result(timeout_s=600) for handle in handles]
    row = _told(results, start)
    row["publish_s"] = round(published - start, 3)
    return row


async def _submitted(client: TranslationClient, jobs: list[TranslationJob]) -> list[JobHandle]:
    return [handle async for handle in client.submit_many(jobs)]


async def _closed_loop(client: TranslationClient, jobs: list[TranslationJob], clients: int) -> Row:
    waiting = iter(jobs)
    results: list[TranslationResult] = []
    latencies: list[float] = []
    start = time.time()

    async def one() -> None:
        for job in waiting:
            handed_over = time.perf_counter()
            handle = await client.submit(job)
            results.append(await handle.result(timeout_s=600))
            latencies.append(time.perf_counter() - handed_over)

    await asyncio.gather(*(one() for _ in range(clients)))
    return {**_told(results, start), "end": time.time(), "latencies": latencies}


def _told(results: Sequence[TranslationResult], start: float) -> Row:
    ends = [_seconds(result.timing.finished_at) for result in results]
    begins = [_seconds(result.timing.started_at) for result in results]
    return {
        "start": start,
        "end": max(ends),
        "latencies": [end - start for end in ends],
        "tokens": sum(result.usage.completion_tokens for result in results),
        "statuses": dict(Counter(result.status for result in results)),
        "by_worker": sorted(Counter(result.worker_id for result in results).values()),
        "jobs_per_s_from_first_claim": round(len(ends) / (max(ends) - min(begins)), 3),
    }


def _as(job: TranslationJob, job_id: str) -> TranslationJob:
    return job.model_copy(update={"job_id": job_id})


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


# --- `vllm serve` and `vllm run-batch` ------------------------------------------------------------


def over_http(resident: Serve, batch: Batch, given: Row) -> Row:
    """Request completions with token ids, with a bound on requests in flight."""
    return timed_by_child(resident.client, "http", batch, given)


def run_batch(work: Work, batch: Batch, given: Row, model: str, folder: Path) -> tuple[Row, float]:
    """Run a file through `vllm run-batch`; time counts from when all requests are submitted.

    `vllm run-batch` loads the engine itself; its progress bar begins after that, and ends with the
    last request. Chat completions are all it takes, of the same prompts.
    """
    asked, output = folder / "run-batch-in.jsonl", folder / "run-batch-out.jsonl"
    asked.write_text(_batch_file(work, batch, given["jobs"], model), encoding="utf-8")
    files = ("-i", str(asked), "-o", str(output))
    argv = [*run_batch_command(model), *files, *as_flags(given["options"])]
    launched = time.time()
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    start, end = _progress(process, folder / "run-batch.log")
    if process.wait() != 0 or not end:
        raise RuntimeError(f"run-batch ended with {process.returncode}; see its log")
    usages = [_usage(line) for line in output.read_text(encoding="utf-8").splitlines()]
    row: Row = {
        "start": start,
        "end": end,
        "latencies": [end - start] * len(usages),
        "tokens": sum(usage["completion_tokens"] for usage in usages),
        "told_prompt_tokens": sum(usage["prompt_tokens"] for usage in usages),
        "whole_command_s": round(time.time() - launched, 1),
    }
    return row, round(start - launched, 1)


def _batch_file(work: Work, batch: Batch, count: int, model: str) -> str:
    lines = []
    for job, request in list(zip(batch.jobs, batch.requests, strict=True))[:count]:
        body = {"model": model, "messages": work.messages(job), **decoding_fields(request)}
        line = {"custom_id": job.job_id, "method": "POST", "url": "/v1/chat/completions"}
        lines.append(json.dumps({**line, "body": body}))
    return "\n".join(lines) + "\n"


def _progress(process: subprocess.Popen[bytes], log: Path) -> tuple[float, float]:
    """Return when the bar began and ended, by the clock at which its lines arrive."""
    start = end = 0.0
    with log.open("wb") as file:
        for line in process.stderr or ():
            file.write(line)
            bar = re.search(rb"(\d+)% Completed \| (\d+)/(\d+)", line)
            if bar and not start:
                start = time.time()
            if bar and bar[2] == bar[3]:
                end = end or time.time()
    return start, end


def _usage(line: str) -> dict[str, int]:
    answer = json.loads(line)
    if answer.get("error"):
        raise RuntimeError(f"run-batch: {answer['error']}")
    usage: dict[str, int] = answer["response"]["body"]["usage"]
    return usage


def children_of(residents: Sequence[Resident]) -> list[Child]:
    """Return the children that read a queue."""
    return [resident for resident in residents if isinstance(resident, Child)]
