"""In a box the first record that its broker has dropped is noticed, and counted to the record."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import RecordsDropped
from dragoman_worker.kafka import consumer as module
from dragoman_worker.kafka import membership
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.kafka.membership import BOX_MAX_WAIT_MS, FETCH_MAX_WAIT_MS
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity
from support.fakes.fake_consumer import FakeConsumer, partition

PLACE = TopicPartition("jobs", 0)


def consumer_of(
    fake: FakeConsumer, monkeypatch: pytest.MonkeyPatch, *, in_box: bool = True
) -> KafkaConsumer:
    def made(**options: object) -> FakeConsumer:
        fake.options = dict(options)
        return fake

    monkeypatch.setattr(membership, "AIOKafkaConsumer", made)
    monkeypatch.setattr(module, "COMMIT_EVERY_S", 3_600.0)
    return KafkaConsumer(
        KafkaSettings(),
        partition_span=5_000,
        client_id="w",
        metrics=Metrics(CollectorRegistry()),
        in_box=in_box,
    )


async def after_a_jump(
    monkeypatch: pytest.MonkeyPatch, *, committed: int | None, first: int, in_box: bool = True
) -> int:
    """Poll a partition whose oldest records are gone; return how many deliveries there are."""
    fake = FakeConsumer()
    consumer = consumer_of(fake, monkeypatch, in_box=in_box)
    await consumer.start(Deadline.after(5))
    fake.fill(0, 3, start=first)
    fake.beginnings = {partition(0): first}
    fake.stored = {} if committed is None else {partition(0): committed}
    await fake.rebalance([0])
    try:
        return len(await consumer.poll(Capacity(10)))
    finally:
        await consumer.close()


@pytest.mark.parametrize(("committed", "dropped"), [(16, "14,916"), (None, "14,932")])
async def test_a_jump_over_dropped_records_halts_with_their_number(
    monkeypatch: pytest.MonkeyPatch, committed: int | None, dropped: str
) -> None:
    with pytest.raises(RecordsDropped, match=f"^{dropped} records dropped"):
        await after_a_jump(monkeypatch, committed=committed, first=14_932)


@pytest.mark.parametrize("committed", [None, 7])
async def test_a_log_that_is_whole_goes_on(
    monkeypatch: pytest.MonkeyPatch, committed: int | None
) -> None:
    assert await after_a_jump(monkeypatch, committed=committed, first=committed or 0) == 3


async def test_a_gap_of_a_real_broker_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await after_a_jump(monkeypatch, committed=1, first=9, in_box=False) == 3


async def test_a_position_before_the_log_halts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeConsumer()
    consumer = consumer_of(fake, monkeypatch)
    await consumer.start(Deadline.after(5))
    fake.stored = {partition(0): 0}
    await fake.rebalance([0])
    fake.beginnings = {partition(0): 5}
    fake.polls.append(OffsetOutOfRangeError({partition(0): 0}))
    with pytest.raises(RecordsDropped, match=r"^5 records dropped"):
        await consumer.poll(Capacity(10))
    await consumer.close()


@pytest.mark.parametrize(
    ("in_box", "wait_ms"), [(True, BOX_MAX_WAIT_MS), (False, FETCH_MAX_WAIT_MS)]
)
async def test_a_box_is_asked_every_few_milliseconds(
    monkeypatch: pytest.MonkeyPatch, in_box: bool, wait_ms: int
) -> None:
    fake = FakeConsumer()
    consumer = consumer_of(fake, monkeypatch, in_box=in_box)
    await consumer.start(Deadline.after(5))
    assert fake.options["fetch_max_wait_ms"] == wait_ms
    await consumer.close()


@given(st.sets(st.integers(0, 60)), st.lists(st.integers(1, 9), max_size=8))
def test_every_missing_offset_below_the_last_one_is_counted_once(
    present: set[int], sizes: list[int]
) -> None:
    partitions = Partitions(Metrics(CollectorRegistry()), gapless=True)
    partitions.track(PLACE, 0, None)
    left = sorted(present)
    for size in [*sizes, len(left)]:
        batch, left = left[:size], left[size:]
        records = [
            SimpleNamespace(offset=each, key=b"", value=b"", headers=(), timestamp=0)
            for each in batch
        ]
        partitions.register({PLACE: records})
    assert partitions.dropped == (max(present) + 1 - len(present) if present else 0)
