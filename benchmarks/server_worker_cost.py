"""Measure the memory and CPU of a whole worker whose engine is a server, beside the echo engine.

usage: server_worker_cost.py [--jobs 10000] [--in-flight 2000] [--latency 4]

A real Kafka and Redis, and a server in a process of its own that answers after `--latency` and
says that it runs all it gets. Memory and CPU are those of the worker's processes together; the
warm-up, as many jobs as are in flight, is left out of the CPU. The quality level is off, because
both engines only put a tag before a text.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.chaos.served import _PROFILE as PROFILE
from support.processes.child_process import ChildProcess
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.ports import free_port
from support.services.redis_server import RedisServer

_TEXT: Final = "The train to the coast leaves at seven, and nobody has bought the tickets yet. " * 4
_WAIT_S: Final = 300.0


def measured(kind: str, given: argparse.Namespace, kafka: KafkaBroker, redis: RedisServer) -> Any:
    """Return the costs of one worker."""
    topic = kafka.create_topic(f"cost-{kind}", 8)
    kafka.create_topic(f"{topic}-dead", 1)
    port = free_port()
    argv = [sys.executable, "-m", "support.chaos.served", str(port), str(given.latency), "counts"]
    with tempfile.TemporaryDirectory() as name, ChildProcess(argv, log=Path(name) / "server.log"):
        (Path(name) / "tagged.toml").write_text(PROFILE)
        settings: dict[str, Any] = {
            "engine.kind": kind,
            "engine.options.max_num_seqs": given.in_flight,
            "quality.level": "off",
        }
        if kind == "openai":
            settings |= {
                "engine.url": f"http://127.0.0.1:{port}",
                "engine.model": "m",
                "engine.profile_file": f"{name}/tagged.toml",
            }
        else:
            settings |= {"engine.echo.latency_s": given.latency}
        worker = WorkerProcess(
            Path(name), kafka=kafka.bootstrap, redis=redis.url, topic=topic, settings=settings
        )
        with worker:
            worker.ready(120)
            idle = _rss(worker)
            _done(worker, kafka, topic, range(given.in_flight))
            cpu = _cpu(worker)
            most, engine = _done(worker, kafka, topic, range(given.in_flight, given.jobs))
            spent = _cpu(worker) - cpu
    return {
        "engine": kind,
        "most_in_engine": engine,
        "idle_rss_mib": round(idle / 2**20),
        "rss_mib": round(most / 2**20),
        "cpu_ms_per_job": round(spent / (given.jobs - given.in_flight) * 1e3, 2),
    }


def _done(worker: Any, kafka: KafkaBroker, topic: str, numbers: range) -> tuple[int, int]:
    """Publish jobs and wait for them; return the most memory, and the most items in the engine."""
    jobs = (
        {"job_id": f"{topic}-{n}", "text": f"{n} {_TEXT}", "target_lang": "de"} for n in numbers
    )
    publish(kafka.bootstrap, topic, jobs)
    began, most, engine = time.monotonic(), 0, 0
    while worker.metric("dragoman_jobs_total") < numbers.stop:
        most = max(most, _rss(worker))
        engine = max(engine, int(worker.metric("dragoman_engine_running")))
        if time.monotonic() - began > _WAIT_S:
            raise SystemExit(
                f"not within {_WAIT_S:g} s; its log ends: {worker.log.read_text()[-2000:]}"
            )
        time.sleep(0.5)
    return most, engine


def _processes(worker: Any) -> list[psutil.Process]:
    own = psutil.Process(worker.pid)
    return [own, *own.children(recursive=True)]


def _rss(worker: Any) -> int:
    return sum(each.memory_info().rss for each in _processes(worker))


def _cpu(worker: Any) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in _processes(worker))


def main() -> None:
    """Print one JSON object per engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--in-flight", type=int, default=2_000)
    parser.add_argument("--latency", type=float, default=4.0)
    given = parser.parse_args()
    with KafkaBroker() as kafka, RedisServer() as redis:
        for kind in ("echo", "openai"):
            sys.stdout.write(json.dumps(measured(kind, given, kafka, redis)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
