"""Jobs per second of one worker from Kafka to Redis, and their costs.

usage: speed.py [--jobs 40000] [--items 1] [--skip 0] [--rounds 3] [--python VENV/bin/python]
                [--out rows.jsonl]

The echo engine at latency 0, quality off, all jobs published before the program starts. Beside it a
bare aiokafka loop and a FastStream program (if VENV with requirements.txt is given) do the same two
scripts and the same event per job. The loop also runs with one script alone, which is the program
that the goal was set beside. Programs take turns, and each round reverses their order. All commit
behind the writes (at least once). The time is from the first script that Redis runs, or the first
after --skip jobs, to the last.
CPU is the program's alone; reads are Redis' reads of its sockets. One row per run, then a table.
With --items 64 every job is a list of so many texts, which the worker alone runs; items_per_s and
worker_cpu_us_per_item are those of the texts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness import Harness, append, between, charges, services, store, table

from support.processes.child_process import ChildProcess
from support.processes.worker_process import WorkerProcess

HERE = Path(__file__).parent
OURS, BARE, FASTSTREAM = "dragoman-worker", "bare loop", "FastStream"
ONE_WRITE = "bare loop of one write"
COLUMNS = (
    *(
        "jobs_per_s",
        "items_per_s",
        "worker_cpu_ms",
        "worker_cpu_us_per_item",
        "redis_reads_per_job",
        "commits_per_s",
        "rss_mib",
    ),
    *("redis_cpu_ms", "kafka_cpu_ms", "redis_memory_bytes", "script_us", "event_us"),
)


@contextmanager
def program(
    system: str, harness: Harness, topic: str, folder: Path, python: str
) -> Iterator[ChildProcess]:
    """Start one of the compared programs."""
    where = {"kafka": harness.broker.bootstrap, "redis": harness.server.url, "topic": topic}
    log = folder / f"{system.split(maxsplit=1)[0]}.log"
    if system == OURS:
        settings = {"quality.level": "off", "engine.echo.faults": False}
        with WorkerProcess(folder, **where, settings=settings) as worker:
            yield worker
        return
    names = {f"ECHO_{name.upper()}": value for name, value in where.items()}
    if system == ONE_WRITE:
        names["ECHO_ONE_WRITE"] = "1"
    file, interpreter = ("bare_program.py", sys.executable)
    if system == FASTSTREAM:
        file, interpreter = "faststream_program.py", python
    with ChildProcess([interpreter, str(HERE / file)], log=log, env={**os.environ, **names}) as one:
        yield one


def measure(system: str, harness: Harness, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one run of one program."""
    topic = harness.fresh_topic(given.partitions)
    harness.publish(topic, given.jobs, items=given.items)
    harness.client.config_resetstat()
    with (
        TemporaryDirectory() as folder,
        program(system, harness, topic, Path(folder), given.python) as process,
    ):
        scripts = 1 if system == ONE_WRITE else 2
        first, last = between(
            harness,
            process.pid,
            scripts * max(given.skip, 1),
            scripts * given.jobs,
            given.timeout_s,
        )
        row = {"system": system, "jobs": given.jobs, **charges(first, last, scripts)}
        row |= store(harness, given.jobs)
        row["items_per_s"] = row["jobs_per_s"] * given.items
        row["worker_cpu_us_per_item"] = 1000 * row["worker_cpu_ms"] / given.items
        if isinstance(process, WorkerProcess):
            row["commits_per_s"] = process.metric("dragoman_commits_total") / (last.at - first.at)
        process.terminate()
        process.wait(timeout_s=30)
    ended = harness.client.hget(f"dragoman:job:e-{given.jobs - 1}", "status")
    if ended != b"completed":
        raise SystemExit(f"{system} left a job behind: {ended!r}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=40_000)
    parser.add_argument("--items", type=int, default=1, help="texts per job")
    parser.add_argument("--skip", type=int, default=0, help="first jobs that are not counted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--python", default="")
    parser.add_argument("--systems", default="")
    parser.add_argument("--timeout-s", type=float, default=600.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.skip >= given.jobs:
        parser.error("--skip leaves no job to count; give fewer than --jobs")
    systems = [OURS, BARE, ONE_WRITE, *([FASTSTREAM] if given.python else [])]
    if given.items > 1:
        systems = [OURS]
    if given.systems:
        systems = given.systems.split(",")
    rows: list[dict[str, Any]] = []
    with services() as harness:
        for number in range(given.rounds):
            turn = number % len(systems)
            for system in systems[turn:] + systems[:turn]:
                rows.append({"round": number, **measure(system, harness, given)})
                append(given.out, rows[-1])
    print(table(rows, "system", COLUMNS))
    print(ratios(rows))


def ratios(rows: list[dict[str, Any]]) -> str:
    """Return the ratios of Dragoman to the others per round: the machine's noise is in both."""
    lines = []
    for other in dict.fromkeys(row["system"] for row in rows if row["system"] != OURS):
        for name in ("jobs_per_s", "worker_cpu_ms"):
            of = {row["round"]: row[name] for row in rows if row["system"] == other}
            own = {row["round"]: row[name] for row in rows if row["system"] == OURS}
            each = [own[number] / of[number] for number in own if number in of]
            if each:
                middle = statistics.median(each)
                spread = f"{min(each):.3g}-{max(each):.3g}"
                lines.append(f"{name}, ours to {other}: {middle:.3g} ({spread})")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
