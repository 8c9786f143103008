"""Verdicts, remedies, glossaries and the memory, seen from outside: real Kafka and Redis.

The echo engine answers from a table, so that errors can be planted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis

from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, publish
from support.services.redis_server import RedisServer

FAITHFUL = "Wir haben die Rechnung gestern Abend an Ihre Adresse geschickt."
SOURCE = "We sent the invoice to your address yesterday evening."
TABLE = [
    (SOURCE, "de", FAITHFUL),
    ("The printer is out of paper and needs to be refilled.", "de",
     "The printer is out of paper and needs to be refilled.",
     "Der Drucker hat kein Papier mehr und muss nachgefüllt werden."),
    ("You have %d new messages in your inbox.", "de",
     "Sie haben neue Nachrichten in Ihrem Posteingang.",
     "Sie haben %d neue Nachrichten in Ihrem Posteingang."),
    ("Please wait until the download has finished.", "de", "Warte Warte Warte Warte " * 40),
]  # fmt: skip


class Trusted:
    """A worker that judges and remembers, and what a program without our packages sees."""

    def __init__(self, topic: str, kafka: KafkaBroker, server: RedisServer) -> None:
        self.kafka = kafka.bootstrap
        self.url = server.url
        self.redis = redis.Redis.from_url(server.url)
        self.topic = topic
        self._ids = count()

    def item(self, text: str, **more: Any) -> dict[str, Any]:
        """Return the result of a job of one item."""
        job_id = f"{self.topic}-{next(self._ids)}"
        job = {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en", **more}
        publish(self.kafka, self.topic, [job])
        [item] = ended(self.redis, job_id)["result"]["translations"]
        assert isinstance(item, dict)
        return item

    def first(self, wanted: Callable[[dict[str, Any]], bool], text: str, **more: Any) -> Any:
        """Repeat the job until its result is as wanted, and return that."""
        items = (self.item(text, **more) for _ in range(1_000))
        return next(item for item in items if wanted(item))


@pytest.fixture(scope="module")
def trusted(
    kafka: KafkaBroker, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trusted]:
    tmp_path = tmp_path_factory.mktemp("trust")
    table = tmp_path / "answers.tsv"
    table.write_text("".join("\t".join(row) + "\n" for row in TABLE), encoding="utf-8")
    name = f"trust-{uuid4().hex}"
    kafka.create_topic(name, 1)
    kafka.create_topic(f"{name}-dead", 1)
    settings = {
        "engine.echo.mode": "table",
        "engine.echo.table": str(table),
        "quality.level": "basic",
        "quality.on_fail": "best_effort",
        "memory.enabled": True,
        "glossary.refresh_s": 0.1,
    }
    worker = ForkedWorker(
        tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=name, settings=settings
    )
    with worker:
        worker.ready()
        made = Trusted(name, kafka, redis_server)
        yield made
        made.redis.close()


def dragoman(trusted: Trusted, *arguments: str) -> str:
    command = [sys.executable, "-m", "dragoman_producer", *arguments, "--redis", trusted.url]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_faithful_answer_is_ok(trusted: Trusted) -> None:
    item = trusted.item(SOURCE)
    assert (item["text"], item["quality"], item["warnings"]) == (FAITHFUL, "ok", [])


def test_a_copy_is_asked_for_again(trusted: Trusted) -> None:
    item = trusted.item(TABLE[1][0])
    assert (item["text"], item["quality"], item["attempts"]) == (TABLE[1][3], "ok", 2)
    assert item["checks"]["copy"]["verdict"] == "fixed"


def test_a_lost_placeholder_is_restored(trusted: Trusted) -> None:
    item = trusted.item(TABLE[2][0])
    assert "%d" in item["text"]
    assert item["checks"]["placeholders"]["verdict"] == "fixed"


def test_a_loop_that_does_not_end_is_kept_as_best_effort_and_fails(trusted: Trusted) -> None:
    item = trusted.item(TABLE[3][0])
    assert (item["quality"], item["fallback"]) == ("fail", "best_effort")
    assert item["checks"]["loop"]["verdict"] == "fail"


def test_the_second_job_with_a_text_is_answered_from_the_memory(trusted: Trusted) -> None:
    trusted.item(SOURCE)
    item = trusted.first(lambda item: item["cached"], SOURCE)  # written in the background
    assert (item["text"], item["quality"], item["attempts"]) == (FAITHFUL, "ok", 0)


def test_a_missing_source_language_is_detected(trusted: Trusted) -> None:
    item = trusted.item(SOURCE, source_lang=None)
    assert item["detected_source_lang"] == "en"
    assert item["quality"] == "ok"


def test_a_stored_glossary_is_applied_and_its_misses_are_reported(
    trusted: Trusted, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("invoice\tFaktura\n", encoding="utf-8")
    dragoman(trusted, "glossary", "add", "shop", str(terms), "--from", "en", "--to", "de")
    item = trusted.item(SOURCE, glossary_id="shop")
    assert item["quality"] == "warn"
    assert item["checks"]["glossary"]["verdict"] == "warn"
    terms.write_text("invoice\tRechnung\n", encoding="utf-8")
    dragoman(trusted, "glossary", "add", "shop", str(terms), "--from", "en", "--to", "de")
    item = trusted.first(lambda item: item["quality"] == "ok", SOURCE, glossary_id="shop")
    assert "glossary" not in item["checks"]
