"""Does what the README tells a newcomer to run still run? On a real Kafka, Redis and worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman_schemas.wire import decode_job, open_record
from support.kafka_broker import KafkaBroker
from support.redis_server import RedisServer
from support.worker_process import WorkerProcess

_README = Path(__file__).parents[2] / "README.md"


def _blocks(language: str) -> list[str]:
    text = _README.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.kafka
@pytest.mark.redis
def test_the_python_example_prints_its_translations(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> None:
    [example] = _blocks("python")
    name = topic(partitions=2)
    env = {
        **os.environ,
        "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap,
        "DRAGOMAN_KAFKA__TOPICS": json.dumps([name]),
        "DRAGOMAN_REDIS__URL": redis_server.url,
    }
    worker = WorkerProcess(tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=name)
    kafka.create_topic(worker.dead_letter_topic)
    with worker:
        worker.ready()
        ran = subprocess.run(
            [sys.executable, "-c", example],
            env=env,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "['[de] Good morning!', '[de] A table for {n}, please.']",
        "1000 completed",
    ]


def test_the_jobs_shown_are_jobs() -> None:
    text = _README.read_text(encoding="utf-8")
    shown = [_blocks("json")[0].strip(), *re.findall(r"echo '(\{.*\})'", text)]
    assert len(shown) == 2
    for job in shown:
        value = job.encode()
        assert decode_job(open_record(value), size=len(value)).job_id == "a1"
