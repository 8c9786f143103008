"""Is it said once that Kafka has gone and once that it is back, and is a hiccup left unsaid?"""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import ConnectionGroup
from structlog.testing import capture_logs

from dragoman_worker.kafka import contact as module
from dragoman_worker.kafka.contact import LOOKS_BEFORE_AWAY, Contact
from dragoman_worker.kafka.group_consumer import UNANSWERED_S, answers
from support.processes.waiting import eventually

SERVERS = "127.0.0.1:9092"


def looked(*told: bool | None) -> tuple[Contact, list[Any]]:
    """A contact after so many looks, and the events of them."""
    rest = iter(told)
    contact = Contact(SERVERS, lambda: next(rest))
    with capture_logs() as events:
        for _ in told:
            contact.look()
    return contact, events


def test_a_broker_that_goes_and_comes_back_is_told_once_each() -> None:
    away, back = [False] * (5 * LOOKS_BEFORE_AWAY), [True] * 3
    contact, events = looked(True, *away)
    assert contact.away
    assert [event["event"] for event in events] == ["kafka_unavailable"]
    assert events[0]["servers"] == SERVERS
    assert events[0]["since"].endswith("Z")
    contact, events = looked(*away, *back, *away, *back)
    assert not contact.away
    names = ["kafka_unavailable", "kafka_available"]
    assert [event["event"] for event in events] == 2 * names
    assert events[1]["after_s"] >= 0


def test_a_hiccup_is_not_told() -> None:
    hiccup = [False] * (LOOKS_BEFORE_AWAY - 1)
    contact, events = looked(*hiccup, True, *hiccup, True)
    assert (contact.away, events) == (False, [])


def test_while_nobody_asks_what_was_known_stands() -> None:
    nobody = [None] * (2 * LOOKS_BEFORE_AWAY)
    assert not looked(*nobody)[0].away
    assert looked(*[False] * LOOKS_BEFORE_AWAY, *nobody)[0].away
    half = [False] * (LOOKS_BEFORE_AWAY // 2)
    assert looked(*half, None, *half)[0].away, "a consumer that is rebuilt is no news of a broker"


async def test_the_watch_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.001)
    contact = Contact(SERVERS, lambda: False)
    watching = asyncio.create_task(contact.watch())
    await eventually(lambda: contact.away, timeout_s=5, what="away")
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
    ids=["none", "closed", "asked now", "idle", "silent", "one of three"],
)
def test_a_broker_answers_that_holds_a_connection_and_owes_no_answer(
    connections: list[dict[str, Any]], answered: bool
) -> None:
    known = {
        (number, ConnectionGroup.DEFAULT): connection(**each)
        for number, each in enumerate(connections)
    }
    # A join may rightly take a minute, so its connection tells nothing.
    known[0, ConnectionGroup.COORDINATION] = connection()
    assert answers(SimpleNamespace(_client=SimpleNamespace(_conns=known))) is answered
