"""No record is processed before its partition has a tracker, even with a slow assignment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery
from support.services.mock_broker import Api, Error, MockBroker
from support.services.plain_clients import committed, publish

pytestmark = pytest.mark.chaos

PARTITIONS = 3


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with MockBroker(1) as made:
        made.create_topic("jobs", PARTITIONS)
        yield made


class Gate:
    """Holds the callback of an assignment while it is shut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = asyncio.Event()
        self.waiting = asyncio.Event()
        adopt: Any = Membership._adopt

        async def adopt_later(membership: Membership, assigned: set[TopicPartition]) -> None:
            self.waiting.set()
            await self.open.wait()
            await adopt(membership, assigned)

        monkeypatch.setattr(Membership, "_adopt", adopt_later)

    async def held_up(self) -> None:
        async with asyncio.timeout(60):
            await self.waiting.wait()

    def shut(self) -> None:
        self.open.clear()
        self.waiting.clear()


async def read(source: KafkaConsumer, count: int) -> list[Delivery]:
    """Poll and complete `count` deliveries."""
    found: list[Delivery] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            for delivery in await source.poll(Capacity(100)):
                assert source.still_assigned(delivery)
                found.append(delivery)
                source.complete(delivery)
    return found


async def test_records_wait_for_a_slow_assignment_and_come_once(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    source = KafkaConsumer(
        KafkaSettings(
            bootstrap_servers=broker.bootstrap, topics=("jobs",), group_id="g", session_timeout_s=3
        ),
        partition_span=1_000,
        client_id="w",
        metrics=Metrics(CollectorRegistry()),
    )
    await asyncio.to_thread(publish, broker.bootstrap, "jobs", [b"%d" % n for n in range(30)])
    await source.start(Deadline.after(30))
    await gate.held_up()
    for _ in range(8):  # two seconds of polls
        assert list(await source.poll(Capacity(100))) == []
    gate.open.set()
    found = await read(source, 30)

    gate.shut()
    broker.fail(Api.HEARTBEAT, Error.UNKNOWN_MEMBER, broker=1)
    polling = asyncio.create_task(read(source, 30))
    await gate.held_up()
    await asyncio.to_thread(publish, broker.bootstrap, "jobs", [b"%d" % n for n in range(30, 60)])
    done, _ = await asyncio.wait({polling}, timeout=1)
    assert not done
    gate.open.set()
    found += await polling
    assert Counter(int(delivery.value or b"") for delivery in found) == Counter(range(60))
    await source.close()
    offsets, end = await asyncio.to_thread(committed, broker.bootstrap, "g", "jobs", PARTITIONS)
    assert (offsets, end) == (60, 60)
