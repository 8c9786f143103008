"""Time until the jobs in flight on a killed worker are done by another worker.

usage: handover.py [--kill replica|tree] [--runs 5] [--jobs 64] [--latency-s 1] [--replicas 1]
       [--busy 0] [--settings '{"kafka.session_timeout_s": 12}']

Each run starts two `dragoman-worker run` with the echo engine on a real Kafka and Redis, publishes
`jobs` jobs over 12 partitions and waits until all are in flight. Then one worker loses
its replica process (`replica`) or its whole process group (`tree`) by SIGKILL. A run prints the
seconds from the kill until every job that was in flight on the victim is completed, the jobs that
were, and how often a job was delivered at most. `--busy` adds processes that use a CPU each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psutil
import redis
from pipeline import DEAD
from worker_process import Worker, working

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.redis_server import RedisServer

PARTITIONS = 12
LIMIT_S = 180.0


async def measure(given: argparse.Namespace, broker: KafkaBroker, server: RedisServer) -> float:
    """Kill one of two workers; return the seconds until its jobs in flight are done."""
    topic = f"handover-{uuid4().hex[:8]}"
    broker.create_topic(topic, PARTITIONS)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        client = stack.enter_context(redis.Redis.from_url(server.url, decode_responses=True))
        settings = {
            "kafka.bootstrap_servers": broker.bootstrap,
            "kafka.topics": topic,
            "kafka.dead_letter_topic": DEAD,
            "kafka.group_id": topic,
            "redis.url": server.url,
            "engine.kind": "echo",
            "engine.echo.latency_s": given.latency_s,
            "engine.replicas": given.replicas,
            **given.settings,
        }
        workers = [Worker(name, settings, folder) for name in ("victim", "survivor")]
        for worker in workers:
            await stack.enter_async_context(working(worker, 120))
        names = [f"{topic}-{number}" for number in range(given.jobs)]
        await until(
            lambda: all(each.metric("dragoman_ready") == given.replicas for each in workers)
        )
        await asyncio.to_thread(warm_up, broker, client, topic, given.jobs)
        publish(broker.bootstrap, topic, jobs(names))
        await until(lambda: running(client, names) == len(names))
        killed_at = time.monotonic()
        kill(workers[0], given.kill)
        await until(lambda: completed(client, names) == len(names))
        seconds = time.monotonic() - killed_at
        delivered = [int(client.hget(key(name), "deliveries") or 0) for name in names]
        print(
            json.dumps(
                {
                    "kill": given.kill,
                    "seconds": round(seconds, 2),
                    "in_flight_on_victim": sum(count > 1 for count in delivered),
                    "most_deliveries": max(delivered),
                }
            ),
            flush=True,
        )
    return seconds


def warm_up(broker: KafkaBroker, client: Any, topic: str, count: int) -> None:
    """Let both workers run jobs once, so that no first assignment is under way."""
    names = [f"{topic}-warm-{number}" for number in range(count)]
    publish(broker.bootstrap, topic, jobs(names))
    deadline = time.monotonic() + LIMIT_S
    while completed(client, names) < count:
        if time.monotonic() > deadline:
            raise SystemExit("the workers do not work")
        time.sleep(0.05)


def jobs(names: list[str]) -> list[dict[str, Any]]:
    """Return jobs of one short text each."""
    return [{"job_id": name, "text": f"Hello {name}.", "target_lang": "de"} for name in names]


def kill(worker: Worker, what: str) -> None:
    """Send SIGKILL to the first replica process, or to all processes of the worker."""
    if worker.process is None:
        raise RuntimeError("not started")
    if what == "tree":
        os.killpg(worker.process.pid, signal.SIGKILL)
        return
    children = psutil.Process(worker.process.pid).children()
    next(child for child in children if "replica" in " ".join(child.cmdline()).split()).kill()


def running(client: Any, names: list[str]) -> int:
    """Count the jobs that are in an engine now or have been."""
    return sum(status is not None for status in statuses(client, names))


def completed(client: Any, names: list[str]) -> int:
    """Count the finished jobs."""
    return sum(status == "completed" for status in statuses(client, names))


def statuses(client: Any, names: list[str]) -> list[str | None]:
    """Return the status of each job, None for one that no worker has claimed."""
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.hget(key(name), "status")
    return list(pipe.execute())


def key(name: str) -> str:
    """Return a job's key in Redis."""
    return f"dragoman:job:{name}"


async def until(condition: Any) -> None:
    """Wait until a condition holds, at most 180 s."""
    async with asyncio.timeout(LIMIT_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110  Redis is asked
            await asyncio.sleep(0.02)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep `count` CPUs busy with other work."""
    processes = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def _spin() -> None:
    while True:
        pass


async def main() -> None:
    """Measure the given number of runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", choices=("replica", "tree"), default="replica")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=64)
    parser.add_argument("--latency-s", type=float, default=1.0)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--settings", type=json.loads, default={})
    given = parser.parse_args()
    with KafkaBroker() as broker, RedisServer(appendonly="yes") as server, busy(given.busy):
        broker.create_topic(DEAD, 1)
        seconds = [await measure(given, broker, server) for _ in range(given.runs)]
    print(f"{given.kill}: median {statistics.median(seconds):.1f} s, most {max(seconds):.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
