"""Rows by `translate`, jobs by `submit` and `result`: seconds, memory and losses.

python benchmarks/documents/rows.py --rows 500000 --only parquet,submit
python benchmarks/documents/rows.py --rows 200000 --only jsonl,submit --services box,real

On real Kafka and Redis with a worker, or through a box (`dragoman up`), each with the echo engine.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.processes.box_process import BoxProcess
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


def watched(arguments: list[str], output: Path | None, kafka: str, redis: str) -> str:
    """Run the command; return its seconds, memory of it and of its largest child, and its end."""
    began = time.monotonic()
    command = [sys.executable, "-m", "dragoman_producer", *arguments]
    with (output or Path("/dev/null")).open("wb") as stdout, tempfile.TemporaryFile() as stderr:
        done = psutil.Popen(
            [*command, "--kafka", kafka, "--redis", redis], stdout=stdout, stderr=stderr
        )
        parent = child = 0
        while done.poll() is None:
            try:
                parent = max(parent, done.memory_info().rss)
                child = max([child, *(each.memory_info().rss for each in done.children())])
            except psutil.Error:
                pass
            time.sleep(0.2)
        took = time.monotonic() - began
        stderr.seek(0)
        last = stderr.read().decode().splitlines()[-1:]
    memory = f"{parent / 2**20:.0f} MB, child {child / 2**20:.0f} MB"
    return f"{took:.1f} s, {memory}, exit {done.returncode}, {' '.join(last)}"


def translated(source: Path, out: Path, option: list[str], kafka: str, redis: str) -> None:
    """Translate a table, and print what it took."""
    given = ["translate", str(source), "--to", "de", "--from", "en", "--out", str(out), *option]
    told = watched(given, None, kafka, redis)
    print(f"{source.suffix}: {told}, lost {lost(source, out)}", flush=True)


def submitted(folder: Path, count: int, kafka: str, redis: str) -> None:
    """Submit a file of jobs and wait, then export their results; print what it took."""
    jobs, table, results = (folder / name for name in ("jobs.jsonl", "out.tsv", "results.jsonl"))
    with jobs.open("w") as lines:
        lines.writelines(json.dumps({"text": f"Row {number}."}) + "\n" for number in range(count))
    told = watched(["submit", str(jobs), "--to", "de", "--wait"], table, kafka, redis)
    with table.open() as lines:
        found = {line.rstrip("\n").partition("\t")[2] for line in lines}
    missing = sum(f"[de] Row {number}." not in found for number in range(count))
    print(f"submit --wait: {told}, lost {missing}", flush=True)
    told = watched(["result", str(table), "--out", str(results)], None, kafka, redis)
    with results.open("rb") as lines:
        missing = count - sum(1 for _ in lines)
    print(f"result --out: {told}, lost {missing}", flush=True)


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


@contextmanager
def real(folder: Path) -> Iterator[tuple[str, str]]:
    """Run Kafka, Redis and a worker; yield the addresses."""
    with KafkaBroker() as broker, RedisServer(appendonly="yes") as server:
        broker.create_topic("dragoman.jobs", 12)
        broker.create_topic("dragoman.dead-letters")
        with WorkerProcess(
            folder, kafka=broker.bootstrap, redis=server.url, topic="dragoman.jobs",
            settings={"kafka.dead_letter_topic": "dragoman.dead-letters"},
        ) as worker:  # fmt: skip
            worker.ready(60)
            yield broker.bootstrap, server.url


@contextmanager
def box(folder: Path) -> Iterator[tuple[str, str]]:
    """Run a box; yield its addresses. One that drops records ends by itself."""
    with BoxProcess(folder, "--engine", "echo") as process:
        reached = process.reached()
        yield reached["bootstrap_servers"], reached["redis_url"]
        held = sum(part.memory_info().rss for part in process.parts())
        print(f"box: running {process.running}, {held / 2**20:.0f} MB in all parts", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--only", default="parquet,jsonl,csv,submit")
    parser.add_argument("--services", default="real", help="real, box, or both with a comma")
    given = parser.parse_args()
    count, only = given.rows, given.only.split(",")
    for kind_of in given.services.split(","):
        with (
            tempfile.TemporaryDirectory(prefix="rows-") as name,
            {"real": real, "box": box}[kind_of](Path(name)) as at,
        ):
            print(f"--- {kind_of}", flush=True)
            folder = Path(name)
            if set(only) - {"submit"}:
                write(folder, count)
            for kind in only:
                if kind == "submit":
                    submitted(folder, count, *at)
                    continue
                option = ["--field" if kind == "jsonl" else "--column", "description"]
                translated(folder / f"rows.{kind}", folder / f"out-{kind}", option, *at)


if __name__ == "__main__":
    main()
