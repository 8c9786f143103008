"""A million segments through `dragoman translate`: segments per second, memory, a second run.

usage: million.py [--segments 1000000] [--per-file 1000] [--suffix .txt]

A real Kafka, a real Redis (AOF) and one worker with the echo engine at latency 0. Memory is the sum
of the resident pages of the command with its children, and of the worker, at every tenth of the
segments. Then the same command again, and once more after one paragraph in 200 files has changed.
On a busy machine compare the seconds of CPU, not the pace. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.documents import line_format
from support.processes.child_process import command
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

TOPIC = "documents"
MIB = 1024 * 1024


def make(folder: Path, arguments: argparse.Namespace) -> list[Path]:
    """Write the files: paragraphs of some 55 characters between blank lines."""
    folder.mkdir()
    made = []
    for first in range(0, arguments.segments, arguments.per_file):
        path = folder / f"{first // arguments.per_file:06}{arguments.suffix}"
        numbers = range(first, min(arguments.segments, first + arguments.per_file))
        path.write_text("\n\n".join(paragraph(number) for number in numbers) + "\n")
        made.append(path)
    return made


def paragraph(number: int) -> str:
    return f"This is paragraph number {number} of the many that wait."


def resident(pid: int) -> dict[str, int]:
    """Return MiB of a process, and of its children."""
    process = psutil.Process(pid)
    children = [child.memory_info().rss for child in process.children(recursive=True)]
    return {"self": process.memory_info().rss // MIB, "children": sum(children) // MIB}


def cpu_s(pid: int) -> float:
    """Return seconds of CPU of a process and of its children that live."""
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def run(argv: list[str], env: dict[str, str], worker: WorkerProcess, total: int) -> dict[str, Any]:
    """Run the command to its end; return its time, and memory at each tenth."""
    began = time.monotonic()
    items = worker.metric("dragoman_items_total")
    child = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    samples: list[dict[str, Any]] = []
    peak, spent, began_worker = 0, 0.0, cpu_s(worker.pid)
    first = None
    while child.poll() is None:
        time.sleep(0.5)
        try:
            memory, spent = resident(child.pid), cpu_s(child.pid)
        except psutil.Error:
            break
        peak = max(peak, memory["self"])
        done = worker.metric("dragoman_items_total") - items
        if done and first is None:
            first = time.monotonic() - began
        if total and (not samples or done / total >= 0.1 * len(samples)):
            own = resident(worker.pid)
            samples.append({"done": int(done), "client": memory, "worker": own})
    _, errors = child.communicate()
    seconds = time.monotonic() - began
    return {
        "status": child.returncode,
        "seconds": round(seconds, 1),
        "first_result_s": first,
        "peak_client_mib": peak,
        "client_cpu_s": round(spent, 1),
        "worker_cpu_s": round(cpu_s(worker.pid) - began_worker, 1),
        "paid": int(worker.metric("dragoman_items_total") - items),
        "samples": samples,
        "errors": errors.decode()[-600:],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--per-file", type=int, default=1_000)
    parser.add_argument("--suffix", default=".txt")
    arguments = parser.parse_args()
    with (
        TemporaryDirectory() as temporary,
        RedisServer(appendonly="yes") as server,
        KafkaBroker() as broker,
    ):
        folder = Path(temporary)
        line_format.write_entry_points(folder / "site")
        files = make(folder / "in", arguments)
        broker.create_topic(TOPIC, 4)
        broker.create_topic(f"{TOPIC}-dead")
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder / "site"), *sys.path[:1]]),
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap,
            "DRAGOMAN_KAFKA__TOPICS": json.dumps([TOPIC]),
            "DRAGOMAN_REDIS__URL": server.url,
        }
        argv = command("dragoman", "translate", str(folder / "in"), "--to", "de", "--from", "en")
        argv += ["--out", str(folder / "out")]
        settings = {"quality.level": "off", "engine.echo.faults": False}
        with WorkerProcess(
            folder, kafka=broker.bootstrap, redis=server.url, topic=TOPIC, settings=settings
        ) as worker:
            worker.ready()
            row: dict[str, Any] = {"segments": arguments.segments, "files": len(files)}
            row["first"] = run(argv, env, worker, arguments.segments)
            row["segments_per_s"] = round(arguments.segments / row["first"]["seconds"])
            manifest = folder / "out/.dragoman/manifest.db"
            row["manifest_mib"] = manifest.stat().st_size // MIB
            row["second"] = run(argv, env, worker, 0)
            for path in files[:200]:
                text = path.read_text()
                path.write_text(text.replace("is paragraph", "was a paragraph", 1))
            row["changed"] = run(argv, env, worker, 0)
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
