"""What a killed worker costs its group: seconds until its jobs run elsewhere, and the longest gap.

usage: handover.py [--kill replica|tree] [--kills 20] [--rate 20] [--latency-s 1] [--replicas 1]
       [--settings '{"kafka.session_timeout_s": 12}']

Two `dragoman-worker run` with the echo engine share a topic of 12 partitions on a real Kafka and
Redis, while `rate` jobs per second are published. Again and again one of the two loses a replica
process (`replica`), which its supervisor restarts, or its whole process group (`tree`), which this
program restarts. Each kill prints the jobs that the killed process was running, the seconds until
others have claimed the first and the last of them, and the group's longest gap: the longest time
until the next kill in which no job of the group finished, though jobs kept coming.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psutil
import redis
from confluent_kafka import Producer
from pipeline import DEAD
from worker_process import Worker, working

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

PARTITIONS = 12
LIMIT_S = 180.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class TakeOver:
    """One kill: how many jobs it interrupted, and the seconds until they were claimed again."""

    at: float
    jobs: int
    first_s: float
    last_s: float


class Traffic(threading.Thread):
    """Publishes jobs at a steady rate until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._topic = topic
        self._rate = rate
        self._stopped = threading.Event()
        self.names: list[str] = []

    def run(self) -> None:
        """Publish one short text per job."""
        while not self._stopped.wait(1 / self._rate):
            name = f"{self._topic}-{len(self.names)}"
            job = {"job_id": name, "text": "Hello.", "source_lang": "en", "target_lang": "de"}
            self._producer.produce(self._topic, json.dumps(job).encode(), key=name)
            self._producer.poll(0)
            self.names.append(name)

    def stop(self) -> None:
        """Publish no more, and wait until the broker has all."""
        self._stopped.set()
        self.join()
        if self._producer.flush(30):
            raise SystemExit("the broker does not acknowledge")


class Jobs:
    """The keys in Redis of the jobs that were published, in this order."""

    def __init__(self, client: Any, names: list[str]) -> None:
        self._client = client
        self._names = names
        self._ended = 0
        """The number of first jobs that have ended; they are not read again."""

    def fields(self, names: list[str], *fields: str) -> list[list[str | None]]:
        """Return these fields of each job's key."""
        pipe = self._client.pipeline(transaction=False)
        for name in names:
            pipe.hmget(f"dragoman:job:{name}", *fields)
        return list(pipe.execute())

    def running(self) -> dict[str, int]:
        """Return how often each running job was delivered."""
        names = self._names[self._ended :]
        rows = zip(names, self.fields(names, "status", "deliveries"), strict=True)
        return {name: int(count or 0) for name, (status, count) in rows if status == "running"}

    def all_ended(self, count: int) -> bool:
        """Whether the first `count` jobs have ended."""
        for [status] in self.fields(self._names[self._ended : count], "status"):
            if status != "completed":
                return False
            self._ended += 1
        return True

    def finishes(self) -> list[float]:
        """Return when each job finished, in order, in seconds since the epoch."""
        return sorted(
            datetime.fromisoformat(at).timestamp()
            for [at] in self.fields(self._names, "finished_at")
            if at is not None
        )


async def take_over(jobs: Jobs, victim: Worker, what: str) -> TakeOver:
    """Kill; return when others have claimed what the killed process was running."""
    at = time.time()
    kill(victim, what)
    delivered = jobs.running()  # with those of the other process
    claimed: dict[str, float] = {}
    waiting = list(delivered)
    async with asyncio.timeout(LIMIT_S):
        while waiting:
            await asyncio.sleep(POLL_S)
            rows = await asyncio.to_thread(jobs.fields, waiting, "status", "deliveries")
            for name, (status, count) in zip(list(waiting), rows, strict=True):
                again = int(count or 0) > delivered[name]
                if again:
                    claimed[name] = time.time() - at
                if again or status == "completed":  # the other worker's own
                    waiting.remove(name)
    times = claimed.values()
    return TakeOver(at, len(claimed), min(times, default=0.0), max(times, default=0.0))


def kill(worker: Worker, what: str) -> None:
    """Send SIGKILL to the first replica process, or to all processes of the worker."""
    if worker.process is None:
        raise RuntimeError("not started")
    if what == "tree":
        os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.wait(60)
        return
    children = psutil.Process(worker.process.pid).children()
    next(child for child in children if "replica" in " ".join(child.cmdline()).split()).kill()


async def until(condition: Any) -> None:
    """Wait until a condition holds, at most 180 s."""
    async with asyncio.timeout(LIMIT_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110  Redis is asked
            await asyncio.sleep(0.2)


async def restored(workers: list[Worker], jobs: Jobs, traffic: Traffic, replicas: int) -> None:
    """Wait until every replica works on jobs, and the jobs that waited are done."""
    for worker in workers:
        await until(lambda worker=worker: worker.metric("dragoman_ready") == replicas)
    count = len(traffic.names)
    await until(lambda: jobs.all_ended(count))
    for worker in workers:
        await until(lambda worker=worker: worker.metric("dragoman_jobs_in_flight") > 0)


def longest_gaps(finishes: list[float], kills: list[float]) -> list[float]:
    """Return, per kill, the longest time without a finished job until the next kill."""
    windows = pairwise([*kills, float("inf")])
    gaps = [(later - earlier, earlier, later) for earlier, later in pairwise(finishes)]
    return [
        max((gap for gap, began, ended in gaps if ended > start and began < end), default=0.0)
        for start, end in windows
    ]


async def measure(
    given: argparse.Namespace, broker: KafkaBroker, server: RedisServer
) -> tuple[list[TakeOver], list[float]]:
    """Kill the workers in turn; return each take-over and the longest gap after it."""
    topic = f"handover-{uuid4().hex[:8]}"
    broker.create_topic(topic, PARTITIONS)
    kills: list[TakeOver] = []
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
        workers = [Worker(name, settings, folder) for name in ("first", "second")]
        for worker in workers:
            await stack.enter_async_context(working(worker, 120))
        traffic = Traffic(broker.bootstrap, topic, given.rate)
        jobs = Jobs(client, traffic.names)
        traffic.start()
        for number in range(given.kills):
            await restored(workers, jobs, traffic, given.replicas)
            victim = workers[number % len(workers)]
            kills.append(await take_over(jobs, victim, given.kill))
            print(json.dumps(asdict(kills[-1])), flush=True)
            if given.kill == "tree":
                victim.start()
        await restored(workers, jobs, traffic, given.replicas)
        await asyncio.to_thread(traffic.stop)
        await until(lambda: jobs.all_ended(len(traffic.names)))
        finishes = jobs.finishes()
    return kills, longest_gaps(finishes, [each.at for each in kills])


async def main() -> None:
    """Measure the given number of kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", choices=("replica", "tree"), default="replica")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--latency-s", type=float, default=1.0)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--settings", type=json.loads, default={})
    given = parser.parse_args()
    with KafkaBroker() as broker, RedisServer(appendonly="yes") as server:
        broker.create_topic(DEAD, 1)
        kills, gaps = await measure(given, broker, server)
    taken = [each.last_s for each in kills if each.jobs]
    print(
        f"{given.kill}, {len(taken)} kills that interrupted jobs: all of them claimed by others "
        f"after {statistics.median(taken):.1f} s (median; {min(taken):.1f} to {max(taken):.1f}); "
        f"longest gap of the group {statistics.median(gaps):.1f} s (median), {max(gaps):.1f} s "
        "(most)"
    )


if __name__ == "__main__":
    asyncio.run(main())
