"""Time of the first job once the engine is warm, after a clean stop, in a group of one.

usage: first_job.py [--times 10] [--out rows.jsonl]

Each time: a job is published, the worker is started, and stopped by SIGTERM once the job has a
terminal state. `warm_s` is from the log's `engine_ready` to the job's own finish, `start_s` from
the start of the command. The broker starts a group at once (group.initial.rebalance.delay.ms = 0).
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness import Harness, append, services, table

from support.processes.worker_process import WorkerProcess
from support.services.plain_clients import ended


def measure(number: int, harness: Harness, topic: str) -> dict[str, Any]:
    """Measure one start for one job."""
    harness.publish(topic, 1, first=number)
    where = {"kafka": harness.broker.bootstrap, "redis": harness.server.url, "topic": topic}
    settings = {"quality.level": "off", "engine.echo.faults": False}
    started = time.time()
    with (
        TemporaryDirectory() as folder,
        WorkerProcess(Path(folder), **where, settings=settings) as worker,
    ):
        end = ended(harness.client, f"e-{number}", timeout_s=90)
        finished = _seconds(end["result"]["timing"]["finished_at"])
        warm = next(
            _seconds(event["timestamp"])
            for event in map(json.loads, worker.output.splitlines())
            if event["event"] == "engine_ready"
        )
        worker.terminate()
        status = worker.wait(timeout_s=30)
    if status != 0:
        raise SystemExit(f"the worker did not stop cleanly: {status}")
    return {
        "start": "after a clean stop" if number else "of a new group",
        "warm_s": finished - warm,
        "start_s": finished - started,
    }


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with services() as harness:
        topic = harness.fresh_topic(4)
        for number in range(given.times + 1):
            rows.append(measure(number, harness, topic))
            append(given.out, rows[-1])
    print(table(rows, "start", ("warm_s", "start_s")))


if __name__ == "__main__":
    main()
