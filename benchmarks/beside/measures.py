"""What is measured of a side, by its commands: echo jobs, echo items and documents."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import psutil
import redis
from documents import Documents
from sides import Side

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.processes.child_process import ChildProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import TERMINAL, publish
from support.services.ports import free_ports
from support.services.redis_server import RedisServer

ITEMS: Final = 64
"""Texts of a job of the second measure."""
_WARM_UP: Final = 1 / 3
"""Share of the jobs, the first to end, that are not counted: processes still start meanwhile."""
_TAIL: Final = 0.99
"""Share of the jobs that ends the count: a straggler would move it."""
_LONGEST_S: Final = 300.0
_SAMPLE_S: Final = 0.2
_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Services:
    """The broker and the Redis that both sides use, one after the other."""

    broker: KafkaBroker
    server: RedisServer
    client: redis.Redis

    def settings(self) -> dict[str, Any]:
        """Create fresh topics, empty Redis, and return the settings of worker and client."""
        self.client.flushall()
        topic = f"speed-{time.time_ns()}"
        self.broker.create_topic(topic, 4)
        self.broker.create_topic(f"{topic}-dead")
        return {
            "kafka.bootstrap_servers": self.broker.bootstrap,
            "kafka.topics": [topic],
            "kafka.dead_letter_topic": f"{topic}-dead",
            "kafka.group_id": f"{topic}-group",
            "redis.url": self.server.url,
            "quality.level": "off",
            "engine.kind": "echo",
            "http.port": free_ports(1)[0],
        }


@contextmanager
def services() -> Iterator[Services]:
    """Start a real Kafka, and a real Redis that appends every write."""
    with (
        RedisServer(appendonly="yes") as server,
        KafkaBroker() as broker,
        redis.Redis.from_url(server.url) as client,
    ):
        yield Services(broker, server, client)


# --- jobs -----------------------------------------------------------------------------------------


def jobs(side: Side, use: Services, count: int, folder: Path) -> dict[str, float]:
    """Return jobs per second, and µs of CPU per job."""
    pace, cpu_s = _paced(side, use, count, 1, folder)
    return {"jobs_per_s": pace, "job_cpu_us": 1e6 * cpu_s}


def items(side: Side, use: Services, count: int, folder: Path) -> dict[str, float]:
    """Return items per second, and µs of CPU per item, of jobs of ITEMS texts."""
    pace, cpu_s = _paced(side, use, count, ITEMS, folder)
    return {"items_per_s": pace * ITEMS, "item_cpu_us": 1e6 * cpu_s / ITEMS}


def _paced(side: Side, use: Services, count: int, texts: int, folder: Path) -> tuple[float, float]:
    """Return jobs per second and CPU seconds per job of a worker that finds all jobs published."""
    settings = use.settings()
    publish(use.broker.bootstrap, settings["kafka.topics"][0], _records(count, texts))
    with _worker(side, settings, folder) as worker:
        samples = _watched(worker, use, count)
    ends = sorted(_ended(use, count))
    first, last = int(_WARM_UP * count), int(_TAIL * count) - 1
    begin, end = ends[first], ends[last]
    spent = _cpu_at(samples, end) - _cpu_at(samples, begin)
    return (last - first) / (end - begin), spent / (last - first)


def _records(count: int, texts: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        lines = [f"This is sentence number {number}-{n} of many that wait." for n in range(texts)]
        yield {
            "job_id": f"e-{number}",
            "text": lines if texts > 1 else lines[0],
            "source_lang": "en",
            "target_lang": "de",
            "quality": {"level": "off"},
        }


def _watched(worker: ChildProcess, use: Services, count: int) -> list[tuple[float, float]]:
    """Wait until every job has ended; return the worker's CPU seconds so far by the clock."""
    began = time.monotonic()
    samples = [(time.time(), _cpu_s(worker.pid))]
    for step in (50, 1):  # few questions while it works
        waiting: Sequence[int] = range(0, count, step)
        while waiting := _left(use, waiting):
            time.sleep(_SAMPLE_S)
            samples.append((time.time(), _cpu_s(worker.pid)))
            if not worker.running or time.monotonic() - began > _LONGEST_S:
                raise SystemExit(f"the worker left jobs undone:\n{worker.output[-3000:]}")
        samples.append((time.time(), _cpu_s(worker.pid)))
    return samples


def _left(use: Services, numbers: Sequence[int]) -> Sequence[int]:
    """Return jobs that have not ended, by looking at no more than needed to find one."""
    for first in range(0, len(numbers), _CHUNK):
        chunk = numbers[first : first + _CHUNK]
        left = [
            n
            for n, (status, _) in zip(chunk, _fields(use, chunk), strict=True)
            if status not in TERMINAL
        ]
        if left:
            return [*left, *numbers[first + _CHUNK :]]
    return []


def _fields(use: Services, numbers: Sequence[int]) -> list[tuple[bytes | None, bytes | None]]:
    """Return status and time of the end of some jobs."""
    with use.client.pipeline(transaction=False) as pipe:
        for number in numbers:
            pipe.hmget(f"dragoman:job:e-{number}", "status", "finished_at")
        found: list[tuple[bytes | None, bytes | None]] = pipe.execute()
    return found


def _ended(use: Services, count: int) -> Iterator[float]:
    """Yield the times at which the jobs were completed, by the clock."""
    for first in range(0, count, _CHUNK):
        for status, at in _fields(use, range(first, min(count, first + _CHUNK))):
            if status != b"completed" or at is None:
                raise SystemExit(f"a job has ended as {status!r}")
            yield datetime.fromisoformat(at.decode()).timestamp()


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and of those below it."""
    spent = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for each in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                spent += sum(each.cpu_times()[:2])
    return spent


def _cpu_at(samples: Sequence[tuple[float, float]], at: float) -> float:
    """Return the CPU seconds at a time, between two samples by their line."""
    for (before, low), (after, high) in pairwise(samples):
        if before <= at <= after:
            return low + (high - low) * (at - before) / (after - before)
    return samples[-1][1]


# --- documents ------------------------------------------------------------------------------------


def documents(side: Side, use: Services, source: Documents, folder: Path) -> dict[str, float]:
    """Return MB per second of `dragoman translate`, and ms of its CPU per MB.

    Nearly all texts of the documents repeat, so that few jobs are sent: what takes the time is to
    read, cut, write and read back, in the command and its children.
    """
    settings = use.settings()
    command = [
        str(side.bin / "dragoman"),
        "translate",
        str(source.folder),
        "--from",
        "en",
        "--to",
        "de",
    ]
    command += ["--out", str(folder / "out"), "--quality", "off", *side.ways.translate]
    with _worker(side, settings, folder) as worker:
        worker.wait_for(lambda: _ready(settings["http.port"]), timeout_s=60, what="/readyz")
        began, before = time.monotonic(), _children_cpu_s()
        done = subprocess.run(
            command,
            env=os.environ | _environment(settings),
            check=False,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
        )
        seconds, cpu_s = time.monotonic() - began, _children_cpu_s() - before
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-3000:]}")
    size = source.megabytes
    return {"documents_mb_per_s": size / seconds, "documents_cpu_ms_per_mb": 1000 * cpu_s / size}


def _children_cpu_s() -> float:
    """Return the CPU seconds of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ready(port: int) -> bool:
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as page:
        return bool(page.status == 200)
    return False


# --- commands -------------------------------------------------------------------------------------


@contextmanager
def _worker(side: Side, settings: Mapping[str, Any], folder: Path) -> Iterator[ChildProcess]:
    """Run `dragoman-worker run` of a side; it is not yet ready."""
    command = [str(side.bin / "dragoman-worker"), "run"]
    env = _environment({**settings, **side.ways.settings})
    with ChildProcess(command, log=folder / "worker.log", env=env) as worker:
        yield worker


def _environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings by dotted name as variables of the environment, which all commands read."""
    return {
        f"DRAGOMAN_{name.upper().replace('.', '__')}": value
        if isinstance(value, str)
        else json.dumps(value)
        for name, value in settings.items()
    }
