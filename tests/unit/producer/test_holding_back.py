"""In a box a publisher never has more than its share of a partition beyond the committed offset."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.holding_back import HoldingBack

BOUND = 100
PLACES = [TopicPartition("jobs", number) for number in range(3)]


class Log:
    """Partitions to which records are appended, and a group that reads a record a look."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, list[int]] = {place: [] for place in PLACES}
        self.committed: dict[TopicPartition, int] = {}
        self.most: dict[TopicPartition, int] = dict.fromkeys(PLACES, 0)
        self.alone = True
        """Whether a record beyond the bound was ever stored beside another one."""

    def append(self, place: TopicPartition, size: int) -> int:
        self.records[place].append(size)
        left = self.records[place][self.committed.get(place, 0) :]
        self.alone = self.alone and (sum(left) <= BOUND or len(left) == 1)
        return len(self.records[place]) - 1

    async def look(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        for place in places:
            at = self.committed.get(place, 0)
            self.committed[place] = min(at + 1, len(self.records[place]))
        return dict(self.committed)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_producer.holding_back._LOOK_S", 0.0)


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.integers(1, 150)), max_size=60))
def test_every_record_is_stored_and_no_partition_holds_more_than_its_share(
    records: list[tuple[TopicPartition, int]],
) -> None:
    log = Log()

    async def run() -> None:
        holding = HoldingBack(BOUND, log.look)

        async def publish(place: TopicPartition, size: int) -> None:
            async with holding.room(place, size) as acknowledged:
                await asyncio.sleep(0)
                acknowledged(log.append(place, size))

        await asyncio.wait_for(asyncio.gather(*(publish(*each) for each in records)), 20)

    asyncio.run(run())
    assert sum(map(len, log.records.values())) == len(records)
    assert log.alone


async def test_a_record_that_was_not_stored_gives_its_room_back() -> None:
    async def nothing(_: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        raise AssertionError("there was room")

    holding = HoldingBack(BOUND, nothing)
    for _ in range(3):
        with pytest.raises(LookupError):
            async with holding.room(PLACES[0], BOUND):
                raise LookupError


async def test_a_full_partition_does_not_hold_others_up() -> None:
    waiting = asyncio.Event()

    async def stuck(_: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        waiting.set()
        await asyncio.Event().wait()
        return {}

    holding = HoldingBack(BOUND, stuck)

    async def publish(place: TopicPartition) -> None:
        async with holding.room(place, BOUND) as acknowledged:
            acknowledged(0)

    await publish(PLACES[0])
    second = asyncio.create_task(publish(PLACES[0]))
    await waiting.wait()
    await asyncio.wait_for(publish(PLACES[1]), 20)
    assert not second.done()
    second.cancel()
