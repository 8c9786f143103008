"""Throughput of the whole pipeline on one machine, Kafka in and Redis out, beside the engine's.

usage: pipeline.py --model DIR --profile demo --jobs jobs.jsonl --options '{"max_num_seqs": 64}'
                   [--services real|embedded] [--exact-lengths] [--rounds 1] [--out rows.json]

A round is `LLM.generate` on the jobs (baseline.py, a process of its own), then the pipeline on the
same jobs: all are published before the worker starts, and time counts from the first job's start to
the last one's end, by the times in the results. CPU seconds are those of each process in that time,
GPU busy is NVML's, sampled ten times per second. Prints a table and, last, one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from dragoman_producer import TranslationClient
from dragoman_schemas.jobs import TranslationJob

HERE = Path(__file__).parent
TOPIC, DEAD = "dragoman.jobs", "dragoman.dead-letters"
PARTITIONS = 8


class GpuBusy:
    """NVML's utilisation over time, the mean of some GPUs; empty without one.

    `gpus` are their indices, such as "0,1"; None are those that CUDA shows.
    """

    def __init__(self, gpus: str | None = None) -> None:
        self.samples: list[tuple[float, float]] = []
        self._gpus = gpus or os.environ.get("CUDA_VISIBLE_DEVICES")
        self._end = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._sample, daemon=True).start()

    def stop(self) -> None:
        self._end.set()

    def between(self, start: float, end: float) -> float | None:
        """Return the mean in percent, None without samples."""
        inside = [busy for at, busy in self.samples if start <= at <= end]
        return sum(inside) / len(inside) if inside else None

    def _sample(self) -> None:
        try:
            import pynvml  # noqa: PLC0415

            pynvml.nvmlInit()
            all_of_them = range(pynvml.nvmlDeviceGetCount())
            names = self._gpus.split(",") if self._gpus else all_of_them
            devices = [pynvml.nvmlDeviceGetHandleByIndex(int(name)) for name in names]
        except Exception:  # noqa: BLE001  no GPU here: nothing to sample
            return
        while not self._end.wait(0.1):
            busy = [pynvml.nvmlDeviceGetUtilizationRates(device).gpu for device in devices]
            self.samples.append((time.time(), sum(busy) / len(busy)))


def baseline(given: argparse.Namespace, gpu: GpuBusy) -> dict[str, Any]:
    """Run one `LLM.generate` over the jobs, in a process of its own."""
    argv = [
        sys.executable,
        str(HERE / "baseline.py"),
        given.model,
        given.profile,
        str(given.jobs),
        json.dumps(given.options),
        *(["--exact-lengths"] if given.exact_lengths else []),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not rows:
        raise SystemExit(f"baseline failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    row: dict[str, Any] = json.loads(rows[-1].removeprefix("RESULT "))
    row["gpu_busy"] = gpu.between(*row.pop("window"))
    return row


@asynccontextmanager
async def services(
    kind: str, topics: Sequence[str] = (TOPIC,)
) -> AsyncIterator[tuple[str, str, dict[str, int]]]:
    """Start services; yield bootstrap servers, Redis URL, and the processes to watch by name."""
    if kind == "real":
        sys.path.insert(0, str(HERE.parent / "tests"))
        from support.services.kafka_broker import KafkaBroker  # noqa: PLC0415
        from support.services.redis_server import RedisServer  # noqa: PLC0415

        with KafkaBroker() as broker, RedisServer(appendonly="yes") as server:
            for topic in topics:
                broker.create_topic(topic, PARTITIONS)
            broker.create_topic(DEAD, 1)
            yield broker.bootstrap, server.url, _children(("java", "kafka"), ("redis", "redis"))
        return
    from dragoman_producer.box.broker import EmbeddedBroker  # noqa: PLC0415
    from dragoman_producer.box.embedded_redis import EmbeddedRedis  # noqa: PLC0415

    partitions = {**dict.fromkeys(topics, PARTITIONS), DEAD: 1}
    with TemporaryDirectory(prefix="dragoman-") as short:
        folder = Path(short)
        async with EmbeddedBroker(partitions) as broker, EmbeddedRedis(folder, folder) as server:
            watched = _children(
                ("dragoman_producer.box.broker", "kafka"), ("redis-server", "redis")
            )
            yield broker.bootstrap, server.url, watched


def _children(*wanted: tuple[str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for process in psutil.Process().children(recursive=True):
        line = " ".join(process.cmdline())
        for text, name in wanted:
            if text in line:
                found[name] = process.pid
    return found


def exact_lengths(exact: bool | float) -> dict[str, Any]:
    """Return the settings of a worker whose answers have no end and no meaning.

    They are judged once, which costs what it costs in service, and always accepted.
    """
    if exact is False:
        return {}
    return {
        "engine.exact_lengths": exact,
        "memory.enabled": False,
        "quality.max_attempts": 1,
        "quality.on_fail": "best_effort",
    }


@contextmanager
def worker(given: argparse.Namespace, kafka: str, redis: str, folder: Path) -> Iterator[int]:
    """Start a worker process on the jobs' topic; yield its pid without waiting for readiness."""
    settings = {
        "kafka.bootstrap_servers": kafka,
        "redis.url": redis,
        "engine.kind": "vllm",
        "engine.model": given.model,
        "engine.profile": given.profile,
        **exact_lengths(given.exact_lengths),
        "http.port": 0,
        **{f"engine.options.{name}": value for name, value in given.options.items()},
    }
    with started(settings, folder / "worker.log") as pid:
        yield pid


@contextmanager
def started(settings: dict[str, Any], log_file: Path) -> Iterator[int]:
    """Start a worker process with these settings; yield its pid, and stop it at the end."""
    argv = worker_command(settings)
    with log_file.open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        try:
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)


def worker_command(settings: dict[str, Any]) -> list[str]:
    """Return the command line that runs a worker with these settings."""
    pairs = [
        part
        for name, value in settings.items()
        for part in ("--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    ]
    return [sys.executable, "-m", "dragoman_worker", "run", *pairs]


def cpu_seconds(pids: dict[str, int], worker_pid: int) -> dict[str, float]:
    """Return the CPU seconds so far of services, worker and engine processes."""
    spent = {name: _cpu(pid) for name, pid in pids.items()}
    spent["worker"] = _cpu(worker_pid)
    children = psutil.Process(worker_pid).children(recursive=True)
    spent["engine"] = sum(_cpu(child.pid) for child in children)
    return spent


def _cpu(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


async def pipeline(given: argparse.Namespace, gpu: GpuBusy) -> dict[str, Any]:
    """Publish, start a worker, wait until every job is settled."""
    jobs = [
        TranslationJob.model_validate_json(line) for line in given.jobs.read_text().splitlines()
    ]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        kafka, redis, pids = await stack.enter_async_context(services(given.services))
        client = TranslationClient(bootstrap_servers=kafka, redis_url=redis)
        await stack.enter_async_context(client)
        published = time.perf_counter()
        handles = [handle async for handle in client.submit_many(jobs)]
        publish_s = time.perf_counter() - published
        pid = stack.enter_context(worker(given, kafka, redis, folder))
        before = await work_begins(pids, pid, folder)
        results = [await handle.result(timeout_s=given.timeout_s) for handle in handles]
        after = cpu_seconds(pids, pid)
    row = row_of([result.model_dump() for result in results], gpu)
    row["publish_jobs_per_s"] = round(len(jobs) / publish_s)
    row["cpu_share"] = {
        name: round((after[name] - before.get(name, 0.0)) / row["seconds"], 3) for name in after
    }
    return row


async def work_begins(pids: dict[str, int], worker_pid: int, folder: Path) -> dict[str, float]:
    """Return the CPU seconds spent until the worker, its engine warm, polls its first job."""
    log = folder / "worker.log"
    while b'"working"' not in log.read_bytes():
        if psutil.Process(worker_pid).status() == psutil.STATUS_ZOMBIE:
            raise SystemExit("the worker ended:\n" + log.read_text()[-4000:])
        await asyncio.sleep(0.02)
    return cpu_seconds(pids, worker_pid)


def row_of(results: list[dict[str, Any]], gpu: GpuBusy) -> dict[str, Any]:
    """Return the figures in the results themselves."""
    start = min(_seconds(result["timing"]["started_at"]) for result in results)
    end = max(_seconds(result["timing"]["finished_at"]) for result in results)
    written = sum(result["usage"]["completion_tokens"] for result in results)
    return {
        "jobs": len(results),
        "statuses": dict(Counter(result["status"] for result in results)),
        "seconds": end - start,
        "jobs_per_s": len(results) / (end - start),
        "output_tokens_per_s": written / (end - start),
        "gpu_busy": gpu.between(start, end),
    }


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--jobs", type=Path, required=True)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--services", choices=("real", "embedded"), default="real")
    parser.add_argument("--exact-lengths", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout-s", type=float, default=900.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    gpu = GpuBusy()
    gpu.start()
    rows = []
    for number in range(given.rounds):
        ceiling = baseline(given, gpu)
        ours = asyncio.run(pipeline(given, gpu))
        ratio = ours["jobs_per_s"] / ceiling["jobs_per_s"]
        rows.append({"round": number, "baseline": ceiling, "pipeline": ours, "ratio": ratio})
        print(json.dumps(rows[-1], indent=1), flush=True)
    gpu.stop()
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1) + "\n")
    print("ROWS " + json.dumps([round(row["ratio"], 3) for row in rows]), flush=True)


if __name__ == "__main__":
    main()
