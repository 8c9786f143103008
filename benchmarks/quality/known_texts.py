"""How many texts that the memory has are generated again under load, on a real Kafka and Redis.

    python benchmarks/quality/known_texts.py [--texts 2000] [--burners 4]

Each text is translated once by the echo engine, from a table. Then all are sent again with other
ids and as many new texts between them, while `--burners` processes keep every core busy. Prints
JSON; `generated_again` is to be 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import redis

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish
from support.services.redis_server import RedisServer

_WAIT_S: Final = 600.0


def source(number: int) -> str:
    """Return a text."""
    return f"Train {number} to the coast leaves in the evening, and nobody has a ticket yet."


def translation(number: int) -> str:
    """Return a translation that no gate doubts."""
    return f"Zug {number} zur Küste fährt am Abend ab, und noch hat niemand eine Fahrkarte."


def jobs(prefix: str, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield a job for each text."""
    for number in numbers:
        job_id = f"{prefix}{number}"
        yield {"job_id": job_id, "text": source(number), "target_lang": "de", "source_lang": "en"}


@contextmanager
def load(count: int) -> Iterator[None]:
    """Keep cores busy."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()


def ended(worker: WorkerProcess, count: int) -> None:
    """Wait until the worker has ended so many jobs."""
    began = time.monotonic()
    while worker.metric("dragoman_jobs_total") < count:
        if time.monotonic() - began > _WAIT_S:
            raise SystemExit(f"not within {_WAIT_S:g} s: {worker.log.read_text()[-2000:]}")
        time.sleep(0.5)


def measured(given: argparse.Namespace, kafka: KafkaBroker, server: RedisServer) -> dict[str, Any]:
    """Translate all texts twice; return how many were generated again."""
    topic, count = kafka.create_topic("known", 8), given.texts
    kafka.create_topic(f"{topic}-dead", 1)
    with tempfile.TemporaryDirectory() as at, redis.Redis.from_url(server.url) as client:
        table = Path(at) / "answers.tsv"
        answers = (f"{source(each)}\tde\t{translation(each)}\n" for each in range(2 * count))
        table.write_text("".join(answers), "utf-8")
        settings = {
            "engine.echo.mode": "table",
            "engine.echo.table": str(table),
            "quality.level": "basic",
            "memory.enabled": True,
        }
        with WorkerProcess(
            Path(at), kafka=kafka.bootstrap, redis=server.url, topic=topic, settings=settings
        ) as worker:
            worker.ready(120)
            publish(kafka.bootstrap, topic, jobs("first", range(count)))
            ended(worker, count)
            known, new = jobs("again", range(count)), jobs("new", range(count, 2 * count))
            with load(given.burners):
                mixed = [each for pair in zip(known, new, strict=True) for each in pair]
                publish(kafka.bootstrap, topic, mixed)
                ended(worker, 3 * count)
            refused = worker.log.read_text().count("memory_refused")
        found = [client.hget(f"dragoman:job:again{each}", "result") for each in range(count)]
    cached = sum(json.loads(each)["translations"][0]["cached"] for each in found if each)
    return {"texts": count, "generated_again": count - cached, "look_ups_given_up": refused}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--burners", type=int, default=4)
    with KafkaBroker() as kafka, RedisServer(appendonly="yes") as server:
        print(json.dumps(measured(parser.parse_args(), kafka, server)))


if __name__ == "__main__":
    main()
