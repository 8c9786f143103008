"""Kafka's loss and its return are logged once each, and a short interruption is not."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import ConnectionGroup
from structlog.testing import capture_logs

from dragoman_worker.kafka import connection as module
from dragoman_worker.kafka.connection import MISSES_BEFORE_UNAVAILABLE, KafkaAvailability
from dragoman_worker.kafka.membership import UNANSWERED_S, answers
from support.processes.waiting import eventually

SERVERS = "127.0.0.1:9092"


def checked(*answers: bool | None) -> tuple[KafkaAvailability, list[Any]]:
    """Return the availability after a check per answer, and the logged events."""
    rest = iter(answers)
    kafka = KafkaAvailability(SERVERS, lambda: next(rest))
    with capture_logs() as events:
        for _ in answers:
            kafka.check()
    return kafka, events


def test_an_outage_and_its_end_are_logged_once_each() -> None:
    lost, back = [False] * (5 * MISSES_BEFORE_UNAVAILABLE), [True] * 3
    kafka, events = checked(True, *lost)
    assert kafka.unavailable
    assert [event["event"] for event in events] == ["kafka_unavailable"]
    assert events[0]["servers"] == SERVERS
    assert events[0]["since"].endswith("Z")
    kafka, events = checked(*lost, *back, *lost, *back)
    assert not kafka.unavailable
    names = ["kafka_unavailable", "kafka_available"]
    assert [event["event"] for event in events] == 2 * names
    assert events[1]["after_s"] >= 0


def test_a_short_interruption_is_not_logged() -> None:
    few = [False] * (MISSES_BEFORE_UNAVAILABLE - 1)
    kafka, events = checked(*few, True, *few, True)
    assert (kafka.unavailable, events) == (False, [])


def test_without_a_consumer_the_last_state_remains() -> None:
    no_consumer = [None] * (2 * MISSES_BEFORE_UNAVAILABLE)
    assert not checked(*no_consumer)[0].unavailable
    assert checked(*[False] * MISSES_BEFORE_UNAVAILABLE, *no_consumer)[0].unavailable
    half = [False] * (MISSES_BEFORE_UNAVAILABLE // 2)
    assert checked(*half, None, *half)[0].unavailable, "replacing the consumer is no answer"


async def test_the_watch_checks_periodically(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_EVERY_S", 0.001)
    kafka = KafkaAvailability(SERVERS, lambda: False)
    watching = asyncio.create_task(kafka.watch())
    await eventually(lambda: kafka.unavailable, timeout_s=30, what="unavailable")
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert watching.cancelled()


def connection(*, open_: bool = True, owes: int = 0, silent_s: float = 0.0) -> Any:
    return SimpleNamespace(
        connected=lambda: open_, _requests=[1] * owes, _last_action=time.monotonic() - silent_s
    )


@pytest.mark.parametrize(
    ("connections", "answered"),
    [
        ([], False),
        ([{"open_": False}], False),
        ([{"owes": 1}], True),
        ([{"silent_s": 600}], True),
        ([{"owes": 1, "silent_s": UNANSWERED_S + 1}], False),
        ([{"open_": False}, {"owes": 1, "silent_s": 600}, {}], True),
    ],
    ids=["none", "closed", "just asked", "idle", "silent", "one of three"],
)
def test_a_broker_with_an_open_connection_and_no_overdue_request_answers(
    connections: list[dict[str, Any]], answered: bool
) -> None:
    known = {
        (number, ConnectionGroup.DEFAULT): connection(**each)
        for number, each in enumerate(connections)
    }
    # A JoinGroup request may take a minute, so its connection does not count.
    known[0, ConnectionGroup.COORDINATION] = connection()
    assert answers(SimpleNamespace(_client=SimpleNamespace(_conns=known))) is answered
