"""Unit tests of the topic reader with slow callers and stalled brokers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from dragoman_connections.settings import DragomanSettings
from dragoman_producer import BrokerUnreachable
from dragoman_producer.operations.reading import RecordSpan, TopicReader

PLACE = TopicPartition("dead-letters", 0)
SPAN = RecordSpan("dead-letters", 0, 0, 4)


class Consumer:
    """Consumer of two batches of two records, or of nothing."""

    def __init__(self, *offsets: tuple[int, ...]) -> None:
        self.batches = list(offsets)
        self.at = 0

    def assign(self, places: list[TopicPartition]) -> None:
        assert places == [PLACE]

    def seek(self, place: TopicPartition, offset: int) -> None:
        self.at = offset

    def pause(self, place: TopicPartition) -> None: ...

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 4)

    async def position(self, place: TopicPartition) -> int:
        return self.at

    async def getmany(self, **_: Any) -> dict[TopicPartition, list[SimpleNamespace]]:
        await asyncio.sleep(0)
        if not self.batches:
            return {}
        offsets = self.batches.pop(0)
        self.at = offsets[-1] + 1
        return {PLACE: [SimpleNamespace(offset=offset) for offset in offsets]}


def reader(consumer: Consumer) -> TopicReader:
    return TopicReader(
        cast("AIOKafkaConsumer", consumer), DragomanSettings.model_validate(SETTINGS)
    )


SETTINGS = {"connect_timeout_s": 0.01, "kafka": {"bootstrap_servers": "127.0.0.1:1"}}
PATIENCE_S = 0.03


async def test_a_slow_caller_is_not_mistaken_for_a_stalled_broker() -> None:
    read = 0
    async for records in reader(Consumer((0, 1), (2, 3))).read([SPAN]):
        read += len(records)
        await asyncio.sleep(2 * PATIENCE_S)
    assert read == 4


async def test_a_broker_that_sends_nothing_is_reported_as_unreachable() -> None:
    with pytest.raises(BrokerUnreachable, match="no records arrive"):
        async for _ in reader(Consumer()).read([SPAN]):
            pass
