"""Harness of the echo benchmarks: broker, Redis with its log, jobs, and their costs.

Progress is counted where all programs meet: two scripts per job in Redis, `claim` and `finish`. CPU
is user and system time of a process and all below it.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import redis

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.redis_server import RedisServer

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Harness:
    """Services of one benchmark."""

    broker: KafkaBroker
    server: RedisServer
    client: redis.Redis
    kafka_pids: tuple[int, ...]

    def fresh_topic(self, partitions: int) -> str:
        """Create a topic and its dead-letter topic, and clear Redis."""
        self.client.flushall()
        topic = f"echo-{time.time_ns()}"
        self.broker.create_topic(topic, partitions)
        self.broker.create_topic(f"{topic}-dead")
        return topic

    def publish(self, topic: str, count: int, first: int = 0, items: int = 1) -> None:
        """Publish short jobs, no two alike, with quality off, until acknowledged."""
        publish(self.broker.bootstrap, topic, jobs(count, first, items))

    def scripts(self) -> int:
        """Return the scripts that Redis has run since its statistics were reset."""
        stats: Any = self.client.info("commandstats")
        return int(stats.get("cmdstat_evalsha", {}).get("calls", 0))


@contextmanager
def services() -> Iterator[Harness]:
    """Start a real Kafka without rebalance delay, and a real Redis that appends every write."""
    with RedisServer(appendonly="yes") as server:
        before = _java()
        with KafkaBroker() as broker:
            client = redis.Redis.from_url(server.url)
            yield Harness(broker, server, client, tuple(_java() - before))
            client.close()


def _java() -> set[int]:
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if "java" in child.name()}


def jobs(count: int, first: int = 0, items: int = 1) -> Iterator[dict[str, Any]]:
    """Yield jobs of one text, or of a list of `items` texts."""
    for number in range(first, first + count):
        texts = [
            f"This is sentence number {number * items + each} of many that wait."
            for each in range(items)
        ]
        yield {
            "job_id": f"e-{number}",
            "text": texts if items > 1 else texts[0],
            "source_lang": "en",
            "target_lang": "de",
            "quality": {"level": "off"},
        }


@dataclass(frozen=True, slots=True)
class Look:
    """Counters at one moment."""

    at: float
    scripts: int
    worker_cpu_s: float
    kafka_cpu_s: float
    redis_cpu_s: float
    redis_reads: int
    redis_in: int
    redis_out: int
    rss: int


def look(harness: Harness, pid: int) -> Look:
    """Return the counters now; `pid` is the program's root process."""
    info: Any = harness.client.info()
    return Look(
        at=time.monotonic(),
        scripts=harness.scripts(),
        worker_cpu_s=cpu_s(pid),
        kafka_cpu_s=sum(map(cpu_s, harness.kafka_pids)),
        redis_cpu_s=cpu_s(harness.server.pid),
        redis_reads=int(info.get("total_reads_processed", 0)),
        redis_in=int(info["total_net_input_bytes"]),
        redis_out=int(info["total_net_output_bytes"]),
        rss=resident(pid),
    )


def store(harness: Harness, count: int) -> dict[str, float]:
    """Return Redis' memory for the finished jobs, and its time per script and event."""
    stats: Any = harness.client.info("commandstats")
    memory: Any = harness.client.info("memory")
    commands = {"script_us": "evalsha", "event_us": "xadd"}
    return {
        "redis_memory_bytes": memory["used_memory_dataset"] / count,
        **{
            name: stats.get(f"cmdstat_{each}", {}).get("usec_per_call", 0.0)
            for name, each in commands.items()
        },
    }


def between(harness: Harness, pid: int, low: int, high: int, timeout_s: float) -> tuple[Look, Look]:
    """Return the counters after `low` and `high` scripts; exit if they are not reached in time."""
    deadline, first = time.monotonic() + timeout_s, None
    while True:
        done = harness.scripts()
        if first is None and done >= low:
            first = look(harness, pid)
        if first is not None and done >= high:
            return first, look(harness, pid)
        if time.monotonic() > deadline or not psutil.pid_exists(pid):
            raise SystemExit(f"only {done} of {high} scripts ran")
        time.sleep(0.05)


def charges(first: Look, last: Look, scripts_a_job: int = 2) -> dict[str, float]:
    """Return the costs per job between two samples of the counters."""
    count, seconds = (last.scripts - first.scripts) / scripts_a_job, last.at - first.at
    return {
        "jobs_per_s": count / seconds,
        "worker_cpu_ms": 1000 * (last.worker_cpu_s - first.worker_cpu_s) / count,
        "kafka_cpu_ms": 1000 * (last.kafka_cpu_s - first.kafka_cpu_s) / count,
        "redis_cpu_ms": 1000 * (last.redis_cpu_s - first.redis_cpu_s) / count,
        "redis_reads_per_job": (last.redis_reads - first.redis_reads) / count,
        "redis_bytes_in": (last.redis_in - first.redis_in) / count,
        "redis_bytes_out": (last.redis_out - first.redis_out) / count,
        "rss_mib": last.rss / MIB,
        "cores_used": (last.worker_cpu_s - first.worker_cpu_s) / seconds,
        "machine_load": os.getloadavg()[0],
    }


def cpu_s(pid: int) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in _tree(pid))


def resident(pid: int) -> int:
    return sum(process.memory_info().rss for process in _tree(pid))


def _tree(pid: int) -> Iterator[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess), one.oneshot():
                one.cpu_times()
                yield one


def append(path: Path | None, row: Mapping[str, Any]) -> None:
    """Print a row and append it to the file of rows."""
    line = json.dumps({name: _short(value) for name, value in row.items()})
    print(line, flush=True)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as rows:
            rows.write(line + "\n")


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def table(rows: Sequence[Mapping[str, Any]], by: str, columns: Iterable[str]) -> str:
    """Return medians by the value of `by`, in the order of first appearance, as Markdown."""
    columns = list(columns)
    lines = [f"| {by} | runs | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for value in dict.fromkeys(row[by] for row in rows):
        own = [row for row in rows if row[by] == value]
        cells = [_spread([row[column] for row in own if column in row]) for column in columns]
        lines.append(f"| {value} | {len(own)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    median = f"{statistics.median(values):.4g}"
    return median if len(values) == 1 else f"{median} ({min(values):.4g}-{max(values):.4g})"


Measure = Callable[[Harness], dict[str, Any]]
