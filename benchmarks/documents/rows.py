"""Rows by `dragoman translate`: seconds, memory and rows lost, with real Kafka and Redis.

python benchmarks/documents/rows.py --rows 500000
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

WORDS = ["red", "blue", "warm", "soft", "shirt", "hat", "with", "a", "long", "fine", "wool", "made"]


def texts(count: int) -> Iterator[str]:
    """Yield texts of 8 to 60 words, no two alike."""
    chance = random.Random(7)
    for number in range(count):
        yield f"Row {number}: " + " ".join(chance.choices(WORDS, k=chance.randint(8, 60))) + "."


def write(folder: Path, count: int) -> None:
    """Write the same rows in three formats."""
    schema = pa.schema([("sku", pa.int64()), ("description", pa.string())])
    with (
        pq.ParquetWriter(folder / "rows.parquet", schema) as parquet,
        (folder / "rows.jsonl").open("w") as lines,
        (folder / "rows.csv").open("w", newline="") as table,
    ):
        written = csv.writer(table)
        written.writerow(["sku", "description"])
        held: list[dict[str, object]] = []
        for number, text in enumerate(texts(count)):
            held.append({"sku": number, "description": text})
            lines.write(json.dumps(held[-1]) + "\n")
            written.writerow([number, text])
            if len(held) == 1_000_000 or number == count - 1:
                parquet.write_table(pa.Table.from_pylist(held, schema))
                held = []


def translated(source: Path, out: Path, option: list[str], kafka: str, redis: str) -> None:
    """Run the command, and print what it took."""
    began = time.monotonic()
    done = psutil.Popen(
        [
            sys.executable, "-m", "dragoman_producer", "translate", str(source), "--to", "de",
            "--from", "en", "--out", str(out), *option, "--kafka", kafka, "--redis", redis,
        ],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    parent = child = 0
    while done.poll() is None:
        try:
            parent = max(parent, done.memory_info().rss)
            child = max([child, *(each.memory_info().rss for each in done.children())])
        except psutil.Error:
            pass
        time.sleep(0.2)
    took = time.monotonic() - began
    print(
        f"{source.suffix}: {took:.1f} s, parent {parent / 2**20:.0f} MB, child"
        f" {child / 2**20:.0f} MB, exit {done.returncode}, lost {lost(source, out)}", flush=True,
    )  # fmt: skip


def lost(source: Path, out: Path) -> int:
    """Return how many rows lack their translation."""
    wanted, path = pq.read_table(source.with_suffix(".parquet")), out / "de" / source.name
    given = wanted["description"].to_pylist()
    if source.suffix == ".parquet":
        made = pq.read_table(path)
        if not made.select(wanted.schema.names).equals(wanted):
            return len(given)
        found = made["description.de"].to_pylist()
    elif source.suffix == ".csv":
        found = pa.csv.read_csv(path)["description.de"].to_pylist()
    else:
        found = [json.loads(line)["description"] for line in path.open()]
    pairs = zip(given, found, strict=True)
    return sum(one != f"[de] {text}" for text, one in pairs)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500_000)
    count = parser.parse_args().rows
    with (
        tempfile.TemporaryDirectory() as name,
        KafkaBroker() as broker,
        RedisServer(appendonly="yes") as server,
    ):
        folder = Path(name)
        write(folder, count)
        broker.create_topic("dragoman.jobs", 4)
        broker.create_topic("dragoman.dead-letters")
        with WorkerProcess(
            folder, kafka=broker.bootstrap, redis=server.url, topic="dragoman.jobs",
            settings={"kafka.dead_letter_topic": "dragoman.dead-letters"},
        ) as worker:  # fmt: skip
            worker.ready(60)
            for kind, option in (
                ("parquet", "--column"),
                ("jsonl", "--field"),
                ("csv", "--column"),
            ):
                translated(
                    folder / f"rows.{kind}", folder / f"out-{kind}", [option, "description"],
                    broker.bootstrap, server.url,
                )  # fmt: skip


if __name__ == "__main__":
    main()
