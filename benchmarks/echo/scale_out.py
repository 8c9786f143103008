"""Throughput of 1 to 16 echo replicas whose engine only waits, and their limit.

usage: scale_out.py [--workers 1,2,4,8,16] [--latency-s 2] [--in-flight 256] [--seconds 20]
       [--rounds 1] [--out rows.jsonl]
       scale_out.py --workers 1,2 --latency-s 0.2 --rounds 3     # two workers against one

N replicas under one supervisor, in one group, each on its share of the partitions. They join first.
Then as many jobs are published as N replicas do in `seconds`; the pace is that of the middle half.
`of ideal` is that pace to N * in_flight / latency, which an engine that only waits would reach;
`of one` to N times the pace of one, in the same round. CPU of workers, broker and Redis per job.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness import Harness, append, between, charges, services, table

from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess

COLUMNS = (
    *("jobs_per_s", "of_ideal", "of_one", "worker_cpu_ms", "kafka_cpu_ms", "redis_cpu_ms"),
    *("machine_cores_used", "redis_bytes_in", "redis_bytes_out", "rss_mib", "redis_connections"),
)


def measure(workers: int, harness: Harness, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one run with the given number of workers."""
    topic = harness.fresh_topic(given.partitions_a_worker * workers)
    ideal = workers * given.in_flight / given.latency_s
    count = round(given.seconds * ideal)
    settings = {
        "engine.replicas": workers,
        "engine.options.max_num_seqs": given.in_flight,
        "engine.echo.latency_s": given.latency_s,
        "engine.echo.latency_spread": 0.5,
        "engine.echo.faults": False,
        "limits.max_engine_items": given.in_flight,
        "kafka.session_timeout_s": 30,
        "quality.level": "off",
    }
    where = {"kafka": harness.broker.bootstrap, "redis": harness.server.url, "topic": topic}
    with (
        TemporaryDirectory() as folder,
        WorkerProcess(Path(folder), **where, settings=settings) as worker,
    ):
        wait_until(
            lambda: worker.metric("dragoman_ready") == workers,
            timeout_s=60 + 20 * workers,
            what=f"{workers} replicas ready",
        )
        harness.client.config_resetstat()
        harness.publish(topic, count)
        first, last = between(harness, worker.pid, count // 2, count * 3 // 2, given.timeout_s)
        clients: Any = harness.client.info("clients")
        row = {"workers": workers, "jobs": count, **charges(first, last)}
        worker.terminate()
        worker.wait(timeout_s=60)
    cpu_ms = row["worker_cpu_ms"] + row["kafka_cpu_ms"] + row["redis_cpu_ms"]
    return row | {
        "of_ideal": row["jobs_per_s"] / ideal,
        "machine_cores_used": cpu_ms * row["jobs_per_s"] / 1000,
        "redis_connections": clients["connected_clients"] - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2,4,8,16")
    parser.add_argument("--latency-s", type=float, default=2.0)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--partitions-a-worker", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout-s", type=float, default=600.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    counts = [int(number) for number in given.workers.split(",")]
    rows: list[dict[str, Any]] = []
    with services() as harness:
        for number in range(given.rounds):
            one = None
            for workers in counts:
                row = {"round": number, **measure(workers, harness, given)}
                one = one or row["jobs_per_s"] / workers
                row["of_one"] = row["jobs_per_s"] / (workers * one)
                rows.append(row)
                append(given.out, row)
    print(table(rows, "workers", COLUMNS))


if __name__ == "__main__":
    main()
