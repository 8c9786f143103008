"""Latency of a cancel in the engine, and what a drain leaves behind.

usage: cancel_and_drain.py [--in-flight 32] [--tokens 400] [--grace-s 5]
       [--engine vllm|echo] [--model DIR --profile demo] [--options '{"enforce_eager": true}']
       [--services real|embedded] [--out row.json]

Every generation has an exact length. Cancel: with `in-flight` generations inside the engine and as
many jobs waiting, each of the running ones is cancelled through the client, 20 a second; a latency
is from that call to the first look that finds `cancelled` in Redis (one every 10 ms), and a slot's
from the call to the `claim` of the waiting job that enters, in order. Drain: `in-flight`
generations of mixed lengths inside the engine and half as many waiting, then SIGTERM to the
command; a second worker takes over. A duplicate is a job that had ended before the first worker
did, and whose stored bytes differ afterwards or which the second worker completed too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from job_groups import ENDED, Store, made, until
from pipeline import exact_lengths, services
from worker_process import Worker, working

from dragoman_producer import TranslationClient
from dragoman_schemas.jobs import TranslationJob

MODEL = Path(__file__).parents[1] / "demo" / "model"
CPU_OPTIONS = {"max_num_batched_tokens": 2048, "max_model_len": 512, "enforce_eager": True}
CANCELS_A_SECOND = 20
LOOK_S = 0.01
TOKENS_A_SECOND = 30
"""Of one generation, for the echo engine, which has no lengths."""
WORDS = 20


# --- cancel ---------------------------------------------------------------------------------------


async def measure_cancels(
    given: argparse.Namespace, client: TranslationClient, store: Store, worker: Worker
) -> dict[str, Any]:
    """Cancel all running jobs one by one, then the rest by their document."""
    draw = random.Random(given.seed)
    jobs = made("to-cancel", [given.tokens] * (2 * given.in_flight), WORDS, draw)
    ids = await publish(client, jobs)
    await until(lambda: engine_full(worker, given.in_flight), 120, "a full engine")
    before = await store.read(ids)
    running = [one for one in ids if before[one]["status"] == "running"]
    waiting = [one for one in ids if before[one]["status"] == "queued"]
    called, cancels = [], []
    began = time.monotonic()
    for number, job_id in enumerate(running):
        await asyncio.sleep(max(0.0, began + number / CANCELS_A_SECOND - time.monotonic()))
        called.append(time.time())
        cancels.append(asyncio.create_task(cancelled_after(client, store, job_id)))
    ends = await asyncio.gather(*cancels)
    await until(lambda: engine_full(worker, given.in_flight), 30, "the slots' reuse")
    entered = await store.read(waiting)
    await client.cancel(document_id="to-cancel")
    rest_s = await store.all_ended(ids, 60)
    entries = sorted(seconds(row["started_at"]) for row in entered.values() if row["started_at"])
    slots = [entry - call for call, entry in zip(called, entries, strict=False)]
    return {
        "in_flight": len(running),
        "ends": dict(Counter(status for _, status in ends)),
        "latency_s": spread([took for took, status in ends if status == "cancelled"]),
        "waiting_jobs_that_entered": len(entries),
        "slot_reused_s": spread(slots),
        "rest_by_document_s": rest_s,
    }


async def cancelled_after(
    client: TranslationClient, store: Store, job_id: str
) -> tuple[float, str]:
    """Return the seconds from the call to a terminal state, and that state."""
    called = time.perf_counter()
    await client.job(job_id).cancel()
    while (status := await store.status(job_id)) not in ENDED:
        if time.perf_counter() - called > 60:
            return 60.0, f"still {status}"
        await asyncio.sleep(LOOK_S)
    return time.perf_counter() - called, status


# --- drain ----------------------------------------------------------------------------------------


async def measure_drain(
    given: argparse.Namespace,
    client: TranslationClient,
    store: Store,
    first: Worker,
    second: Worker,
) -> dict[str, Any]:
    """Send SIGTERM to a full engine; count the finished jobs and those of a second worker."""
    draw = random.Random(given.seed + 1)
    shortest, count = given.tokens // 8, given.in_flight * 3 // 2
    lengths = [draw.randint(shortest, given.tokens) for _ in range(count)]
    jobs = made("to-drain", lengths, WORDS, draw)
    ids = await publish(client, jobs)
    # By the jobs themselves: a gauge may still count cancelled jobs.
    await until(lambda: full_by_jobs(store, ids, given.in_flight), 120, "a full engine")
    asked = await store.read(ids)
    stopped = time.monotonic()
    exit_status = await first.drained(given.grace_s + 60)
    drain_s = time.monotonic() - stopped
    left = await store.read(ids)
    row = {
        "in_flight": sum(one["status"] == "running" for one in asked.values()),
        "ended_before_the_signal": sum(one["status"] in ENDED for one in asked.values()),
        "exit_status": exit_status,
        "seconds": drain_s,
        "after_the_drain": dict(Counter(one["status"] for one in left.values())),
        "claims_left_behind": await store.claims(ids),
    }
    async with working(second, given.start_s):
        row["taken_over_s"] = await store.all_ended(ids, given.start_s)
        row["redelivered"] = second.metric("dragoman_redeliveries_total")
    return row | _duplicates(left, await store.read(ids), second.name)


def _duplicates(
    left: dict[str, dict[str, str]], now: dict[str, dict[str, str]], second: str
) -> dict[str, Any]:
    ended = [one for one, row in left.items() if row["status"] in ENDED]
    changed = [one for one in ended if left[one]["result"] != now[one]["result"]]
    run_again = [one for one in ended if left[one]["deliveries"] != now[one]["deliveries"]]
    by_second = [
        one for one, row in now.items() if json.loads(row["result"]).get("worker_id") == second
    ]
    return {
        "in_the_end": dict(Counter(row["status"] for row in now.values())),
        "completed_by_the_second": len(by_second),
        "duplicates": len(set(changed) | set(run_again) | (set(ended) & set(by_second))),
    }


# --- inside ---------------------------------------------------------------------------------------


async def publish(client: TranslationClient, jobs: Sequence[TranslationJob]) -> list[str]:
    return [handle.job_id async for handle in client.submit_many(jobs)]


async def full_by_jobs(store: Store, ids: Sequence[str], count: int) -> bool:
    return await store.running(ids) >= count


async def engine_full(worker: Worker, count: int) -> bool:
    return await asyncio.to_thread(worker.metric, "dragoman_items_in_flight") >= count


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Return median, 99th percentile (nearest rank) and largest value."""
    if not values:
        return None
    ranked = sorted(values)
    p99 = ranked[max(0, -(-99 * len(ranked) // 100) - 1)]
    figures = {"p50": statistics.median(ranked), "p99": p99, "max": ranked[-1]}
    return {name: round(value, 4) for name, value in figures.items()}


def _settings(given: argparse.Namespace, kafka: str, redis_url: str) -> dict[str, Any]:
    return {
        "kafka.bootstrap_servers": kafka,
        "kafka.session_timeout_s": 10,  # the embedded broker's rebalances take as long
        "redis.url": redis_url,
        **_engine(given),
        "limits.max_engine_items": given.in_flight,
        "quality.level": "off",
        "shutdown.grace_s": given.grace_s,
        "engine.options.max_num_seqs": given.in_flight,
        **{f"engine.options.{name}": value for name, value in given.options.items()},
    }


def _engine(given: argparse.Namespace) -> dict[str, Any]:
    if given.engine == "echo":
        pace = {"latency_s": given.tokens / TOKENS_A_SECOND, "latency_spread": 0.9}
        return {
            "engine.kind": "echo",
            **{f"engine.echo.{name}": value for name, value in pace.items()},
        }
    return {
        "engine.kind": "vllm",
        "engine.model": given.model,
        "engine.profile": given.profile,
        **exact_lengths(True),
    }


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def measure(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        kafka, url, _ = await stack.enter_async_context(services(given.services))
        client = await stack.enter_async_context(TranslationClient(kafka, url))
        store = Store(url)
        stack.push_async_callback(store.close)
        settings = _settings(given, kafka, url)
        first, second = (Worker(name, settings, folder) for name in ("first", "second"))
        row: dict[str, Any] = {
            "engine": given.engine,
            "model": Path(given.model).name,
            "options": given.options,
        }
        start_s = await stack.enter_async_context(working(first, given.start_s))
        row["start_s"] = start_s
        row["cancel"] = await measure_cancels(given, client, store, first)
        print(json.dumps(row["cancel"], indent=1), flush=True)
        row["drain"] = await measure_drain(given, client, store, first, second)
    return row


def table(row: dict[str, Any]) -> str:
    """Return the rows for docs/explanation/benchmarks-host.md."""
    cancel, drain = row["cancel"], row["drain"]
    left, behind = drain["after_the_drain"], drain["claims_left_behind"]
    return f"""\
cancels with {cancel["in_flight"]} in flight: {cancel["ends"]}
  call to `cancelled`, s:   {cancel["latency_s"]}
  call to the next claim, s: {cancel["slot_reused_s"]}
drain of {drain["in_flight"]} in flight: {drain["seconds"]:.1f} s, exit {drain["exit_status"]}
  left: {left}, {behind} takes left behind
  then: {drain["in_the_end"]}, {drain["completed_by_the_second"]} by the second worker
  duplicates: {drain["duplicates"]}"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=("vllm", "echo"), default="vllm")
    parser.add_argument("--model", default=str(MODEL))
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--options", type=json.loads, default=CPU_OPTIONS)
    parser.add_argument("--services", choices=("real", "embedded"), default="real")
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--grace-s", type=float, default=5.0)
    parser.add_argument("--start-s", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        row = asyncio.run(measure(given, Path(folder)))
    print(json.dumps(row["drain"], indent=1))
    print(table(row))
    if given.out:
        given.out.write_text(json.dumps(row, indent=1) + "\n")
    print("ROW " + json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
