"""The `dragoman` commands and real workers on one topic with two partitions and one Redis."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import redis
from confluent_kafka import KafkaException

from support.processes.forked_command import run_forked
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import DeadLetter, committed, publish, read_all
from support.services.redis_server import RedisServer

ALL_ACCOUNTS: Final = (
    "completed",
    "failed",
    "cancelled",
    "expired",
    "live",
    "duplicate",
    "conflict",
    "unreadable",
    "aged_out",
    "lost",
    "stuck",
    "no_dead_letter",
)


class Installation:
    """A topic, a dead-letter topic, one Redis, and the commands on them."""

    def __init__(self, kafka: KafkaBroker, server: RedisServer, topic: str, folder: Path) -> None:
        self.kafka, self.url, self.topic, self.folder = kafka.bootstrap, server.url, topic, folder
        self.redis = redis.Redis.from_url(server.url)
        self.env = {
            **os.environ,
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": self.kafka,
            "DRAGOMAN_KAFKA__TOPICS": json.dumps([topic]),
            "DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC": f"{topic}-dead",
            "DRAGOMAN_KAFKA__GROUP_ID": f"{topic}-group",
            "DRAGOMAN_REDIS__URL": self.url,
        }

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `dragoman`."""
        done = run_forked("dragoman", *arguments, env=self.env)
        assert "internal error" not in done.stderr, done.stderr
        return done

    def objects(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Return the exit status of a command and the objects it prints with --json."""
        done = self(*arguments, "--json")
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def audit(self) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
        """Run the audit and return its status, its sums other than 0, and its broken records."""
        status, (*broken, summary) = self.objects("audit")
        assert summary["records"] == sum(summary[account] for account in ALL_ACCOUNTS)
        sums = {name: summary[name] for name in ALL_ACCOUNTS if summary[name]}
        return status, sums, broken

    @contextmanager
    def worker(self, name: str = "worker", **settings: Any) -> Iterator[WorkerProcess]:
        """Run a replica on the echo engine, ready inside the context and drained at its end."""
        with ForkedWorker(
            self.folder,
            kafka=self.kafka,
            redis=self.url,
            topic=self.topic,
            name=name,
            settings={key.replace("__", "."): value for key, value in settings.items()},
        ) as process:
            yield process.ready()

    def publish(self, *values: bytes | dict[str, Any] | None) -> None:
        """Publish records as a foreign client does."""
        publish(self.kafka, self.topic, values)

    def read(self, topic: str) -> list[DeadLetter]:
        """Return every record of a topic, once the broker knows the topic's partitions."""

        found: list[list[DeadLetter]] = []

        def readable() -> bool:
            try:
                found.append(read_all(self.kafka, topic, 2))
            except KafkaException:
                return False
            return True

        wait_until(readable, timeout_s=20, what=f"{topic} can be read")
        return found[0]

    def letters(self) -> list[DeadLetter]:
        """Return every dead letter."""
        return self.read(f"{self.topic}-dead")

    def settled(self) -> None:
        """Wait until the group has committed every record."""

        def all_committed() -> bool:
            try:
                offsets, end = committed(self.kafka, f"{self.topic}-group", self.topic, 2)
            except KafkaException:  # a new broker has no coordinator for the group yet
                return False
            return offsets == end

        wait_until(all_committed, timeout_s=30, what="everything is committed")


def a_job(job_id: str, text: Any = "Hello.", **more: Any) -> dict[str, Any]:
    """Return a valid job; its text may be a fault line of the echo engine."""
    return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en", **more}
