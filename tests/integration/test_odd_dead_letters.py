"""Integration tests of the commands with dead letters that no worker wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.builders.raw_batches import Header, batch, publish_raw, record
from support.processes.installation import Installation, a_job
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

ANY_TIME: Final = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
YEAR_50000: Final = 1_515_680_384_000_000


@pytest.fixture
def installation(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> Iterator[Installation]:
    name = topic(2, ANY_TIME)
    kafka.create_topic(f"{name}-dead", 2, ANY_TIME)
    made = Installation(kafka, redis_server, name, tmp_path)
    yield made
    made.redis.close()


def dead_letter_headers(topic: str, job_id: str, **changed: bytes | None) -> list[Header]:
    headers: dict[bytes, bytes | None] = {
        b"x-original-topic": topic.encode(),
        b"x-original-partition": b"0",
        b"x-original-offset": job_id.encode(),
        b"x-job-id": job_id.encode(),
        b"x-error-code": b"engine_failed",
        b"x-error-message": b"The engine failed.",
    }
    headers |= {name.replace("_", "-").encode(): value for name, value in changed.items()}
    return list(headers.items())


def odd_dead_letters(topic: str) -> dict[str, dict[str, Any]]:
    """Return odd dead letters by name; key and value are the job's unless they are given."""

    def of(name: str, **changed: bytes | None) -> list[Header]:
        return dead_letter_headers(topic, name, **changed)

    return {
        "plain": {"headers": of("plain")},
        "no-headers": {"headers": []},
        "null-values": {"headers": [(name, None) for name, _ in of("null-values")]},
        "values-no-text": {"headers": [(name, b"\xff\xfe") for name, _ in of("values-no-text")]},
        "name-no-text": {"headers": [*of("name-no-text"), (b"\xff\xfe", b"1")]},
        "null-key": {"headers": of("null-key"), "key": None},
        "null-value": {"headers": of("null-value"), "value": None},
        "no-place": {"headers": of("no-place", x_original_partition=b"x", x_original_offset=b"-")},
        "no-topic": {"headers": of("no-topic", x_original_topic=b"../\x00\xff")},
        "other-topic": {"headers": of("other-topic", x_original_topic=b"payments")},
        "control": {"headers": of("control", x_error_message=b"a\r\n\x1b[2Jb\t\x00")},
        "large": {"headers": of("large", x_error_message=b"x" * 500_000)},
        "twice": {"headers": [*of("twice"), *of("twice", x_error_code=b"poisoned")]},
        "far-future": {"headers": of("far-future"), "timestamp": YEAR_50000},
    }


async def publish_all(installation: Installation, topic: str) -> list[str]:
    dead_letters = odd_dead_letters(installation.topic)
    for name, odd in dead_letters.items():
        fields = {"key": name.encode(), "value": json.dumps(a_job(name)).encode(), **odd}
        at = fields.pop("timestamp", 1_700_000_000_000)
        value = fields.pop("value")
        await publish_raw(
            installation.kafka, topic, batch([record(value, delta=0, **fields)], timestamp=at)
        )
    return list(dead_letters)


async def test_odd_dead_letters_are_listed_shown_and_replayed_beside_plain_ones(
    installation: Installation,
) -> None:
    names = await publish_all(installation, f"{installation.topic}-dead")
    status, dead_letters = installation.objects("dead-letters", "list")
    assert (status, len(dead_letters)) == (0, len(names))
    by_job = {one["job_id"]: one for one in dead_letters}
    assert by_job["far-future"]["at"].startswith("9999-12-31")
    assert by_job["twice"]["code"] == "poisoned"
    lines = installation("dead-letters", "list")
    assert (lines.returncode, len(lines.stdout.splitlines())) == (0, len(names))
    assert "\x1b" not in lines.stdout
    shown = ["null-key", "null-value", "control", "name-no-text", "far-future"]
    status, found = installation.objects("dead-letters", "show", *shown, "--value")
    assert (status, {one["job_id"] for one in found}) == (0, set(shown))
    assert installation("dead-letters", "show", *shown, "--value").returncode == 0
    status, judged = installation.objects("dead-letters", "replay", "--all")
    why = {one["job_id"]: one.get("why", one["action"]) for one in judged}
    assert status == 3
    assert len(judged) == len(names)
    for name in ("plain", "null-key", "no-place", "control", "large", "twice", "far-future"):
        assert why[name] == "replayed", name
    assert (why["null-value"], why["no-topic"], why["other-topic"]) == (
        "unreadable",
        "other_topic",
        "other_topic",
    )
    with installation.worker():
        installation.settled()
    assert installation.redis.hget("dragoman:job:name-no-text", "status") == b"completed"


async def test_odd_records_and_dead_letters_are_audited(installation: Installation) -> None:
    names = await publish_all(installation, installation.topic)
    await publish_all(installation, f"{installation.topic}-dead")
    with installation.worker():
        installation.settled()
    status, sums, broken = installation.audit()
    assert (status, broken) == (0, [])
    assert sum(sums.values()) == len(names)
