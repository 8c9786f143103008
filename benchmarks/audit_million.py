"""Audit of a million jobs: whether the accounts balance, the pace, and the memory.

usage: audit_million.py [--jobs 1000000] [--partitions 8] [--out row.json]

Publishes through the client to a real Kafka and a real Redis (AOF), runs one worker with the echo
engine at latency 0 and no gates, stops it, and runs `dragoman audit`. Worker memory is the sum of
the resident pages of the command and its children, at 0, 25, 50, 75 and 100 % of the jobs; the
audit's is its high-water mark. Prints one JSON object; the exit status is the audit's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import redis

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import TranslationClient
from dragoman_schemas.jobs import TranslationJob

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.processes.child_process import command
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

TOPIC = "million"
MIB = 1024 * 1024


def jobs(count: int) -> Iterator[TranslationJob]:
    """Return jobs of short texts, no two alike."""
    for number in range(count):
        text = f"This is sentence number {number} of many that wait."
        yield TranslationJob(job_id=f"m-{number}", text=text, target_lang="de")


async def publish(settings: DragomanSettings, count: int) -> dict[str, Any]:
    """Publish all jobs until acknowledged; return jobs per second."""
    started, published = time.monotonic(), 0
    async with TranslationClient(settings=settings) as client:
        async for _ in client.submit_many(jobs(count)):
            published += 1
    seconds = time.monotonic() - started
    return {"published": published, "seconds": seconds, "jobs_per_s": published / seconds}


def work(worker: WorkerProcess, count: int, timeout_s: float) -> dict[str, Any]:
    """Wait until the worker has settled every job; return its pace and its memory over time."""
    worker.ready(timeout_s=60)
    started = time.monotonic()
    marks, memory = [0, 25, 50, 75, 100], {}
    while marks:
        done = worker.metric("dragoman_jobs_total")
        while marks and done >= count * marks[0] / 100:
            memory[f"{marks.pop(0)} %"] = round(resident(worker.pid) / MIB, 1)
        if not worker.running or time.monotonic() - started > timeout_s:
            raise SystemExit(f"only {done:.0f} of {count} jobs ended:\n{worker.output[-2000:]}")
        time.sleep(0.1 if count < 100_000 else 1.0)
    seconds = time.monotonic() - started
    worker.terminate()
    status = worker.wait(timeout_s=60)
    return {
        "seconds": seconds,
        "jobs_per_s": count / seconds,
        "rss_mib": memory,
        "exit_status": status,
    }


def resident(pid: int) -> int:
    """Return the resident bytes of a process and its children."""
    process = psutil.Process(pid)
    total = 0
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += one.memory_info().rss
    return total


def audit(config: Path) -> dict[str, Any]:
    """Run `dragoman audit`; return its accounts, seconds and peak memory."""
    argv = command("dragoman", "audit", "--json", "--config", str(config))
    started, peak = time.monotonic(), 0
    with config.with_name("audit.jsonl").open("w+") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, _high_water(process.pid))
            time.sleep(0.05)
        output.seek(0)
        lines = output.read().splitlines()
    return {
        "exit_status": process.returncode,
        "wall_s": time.monotonic() - started,
        "peak_rss_mib": round(peak / MIB, 1),
        "accounts": json.loads(lines[-1]) if lines else None,
        "first_broken": lines[:-1][:5],
    }


def _high_water(pid: int) -> int:
    # Not ru_maxrss: that starts at the size of the process that forked.
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def measure(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    with KafkaBroker() as broker, RedisServer(appendonly="yes") as server:
        broker.create_topic(TOPIC, given.partitions)
        broker.create_topic(f"{TOPIC}-dead")
        config = folder / "dragoman.toml"
        config.write_text(
            f'[kafka]\nbootstrap_servers = "{broker.bootstrap}"\ntopics = ["{TOPIC}"]\n'
            f'dead_letter_topic = "{TOPIC}-dead"\ngroup_id = "{TOPIC}-group"\n'
            f'[redis]\nurl = "{server.url}"\n'
        )
        row: dict[str, Any] = {"jobs": given.jobs}
        row["publish"] = asyncio.run(publish(load_settings(DragomanSettings, config), given.jobs))
        settings = {"quality.level": "off", "engine.echo.faults": False}
        where = {"kafka": broker.bootstrap, "redis": server.url, "topic": TOPIC}
        with WorkerProcess(folder, **where, settings=settings) as worker:
            row["worker"] = work(worker, given.jobs, given.timeout_s)
        with redis.Redis.from_url(server.url) as client:
            row["redis_used_mib"] = round(client.info("memory")["used_memory"] / MIB, 1)
        row["audit"] = audit(config)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--timeout-s", type=float, default=7200.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        row = measure(given, Path(folder))
    text = json.dumps(row, indent=1)
    print(text, flush=True)
    if given.out:
        given.out.write_text(text + "\n")
    raise SystemExit(row["audit"]["exit_status"])


if __name__ == "__main__":
    main()
