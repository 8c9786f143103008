"""The consumer keeps its offsets through errors, rebalances, deletions and failed commits."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    CorruptRecordException,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedCodecError,
)
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.backoff import backoff
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt
from dragoman_worker.kafka import consumer as module
from dragoman_worker.kafka import fetching, membership
from dragoman_worker.kafka.consumer import (
    IDLE_POLL_S,
    REBUILDS_BEFORE_HALT,
    KafkaConsumer,
)
from dragoman_worker.kafka.fetching import TRIES_BEFORE_HALT
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery
from support.fakes.fake_consumer import TOPIC, FakeConsumer, partition
from support.processes.waiting import eventually

SPAN = 20


class Bench:
    """A KafkaConsumer on a fake aiokafka consumer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *topics: str) -> None:
        self.metrics = Metrics(CollectorRegistry())
        monkeypatch.setattr(membership, "AIOKafkaConsumer", self._new_fake)
        self.fake = FakeConsumer()
        self.made = 0
        self.next_ones: deque[FakeConsumer] = deque()
        self.consumer = KafkaConsumer(
            KafkaSettings(topics=topics or (TOPIC,)),
            partition_span=SPAN,
            client_id="w1",
            metrics=self.metrics,
        )

    def _new_fake(self, **options: object) -> FakeConsumer:
        if self.made:  # a new consumer for the same log and group
            old = self.fake
            self.fake = self.next_ones.popleft() if self.next_ones else FakeConsumer()
            self.fake.log, self.fake.stored = old.log, old.stored
            self.fake.beginnings = old.beginnings
            if self.fake.group is None:
                self.fake.group = sorted(tp.partition for tp in old.assignment()) or old.group
        self.made += 1
        self.fake.options = dict(options)
        return self.fake

    async def offsets(self, capacity: int = 100) -> list[tuple[int, int]]:
        return positions(await self.consumer.poll(Capacity(capacity)))

    async def until_halt(self) -> None:
        async with asyncio.timeout(10):
            while True:
                await self.consumer.poll(Capacity(100))

    async def rebuilt(self) -> None:
        """Poll until a new aiokafka consumer has its assignment."""
        old = self.fake
        async with asyncio.timeout(10):
            while self.fake is old or self.consumer.rebuilding:
                assert not await self.consumer.poll(Capacity(1))

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"dragoman_{name}_total", labels) or 0.0


def use_backoff(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Wait up to `seconds` after every failed fetch and before every new consumer."""
    for user in (module, fetching):
        monkeypatch.setattr(user, "BACKOFF", backoff(seconds, seconds))


def positions(deliveries: Sequence[Delivery]) -> list[tuple[int, int]]:
    return [(delivery.partition, delivery.offset) for delivery in deliveries]


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Assign partitions 0 and 1 with ten records each; no periodic commits."""
    monkeypatch.setattr(module, "COMMIT_EVERY_S", 3_600.0)
    use_backoff(monkeypatch, 0.001)
    made = Bench(monkeypatch)
    await made.consumer.start(Deadline.after(5))
    made.fake.fill(0, 10)
    made.fake.fill(1, 10)
    made.fake.stored = {partition(0): 0, partition(1): 0}
    await made.fake.rebalance([0, 1])
    yield made
    await made.consumer.close()


# --- options of the aiokafka consumer -------------------------------------------------------------


async def test_aiokafka_never_commits_resets_or_decodes_by_itself(bench: Bench) -> None:
    options = bench.fake.options
    assert options["enable_auto_commit"] is False
    assert options["auto_offset_reset"] == "none"
    assert options["isolation_level"] == "read_committed"
    assert not {"value_deserializer", "key_deserializer"} & set(options)
    timeout_ms, rebalance_ms = options["request_timeout_ms"], options["rebalance_timeout_ms"]
    assert isinstance(timeout_ms, int)
    assert isinstance(rebalance_ms, int)
    assert timeout_ms > rebalance_ms


# --- polling --------------------------------------------------------------------------------------


async def test_a_record_is_delivered_unchanged(bench: Bench) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    assert (delivery.topic, delivery.partition, delivery.offset) == (TOPIC, 0, 0)
    assert (delivery.key, delivery.value) == (b"k", b"value 0")
    assert delivery.headers == (("traceparent", b"t"),)
    assert delivery.timestamp_ms == 1_000
    assert bench.consumer.still_assigned(delivery)


async def test_a_poll_delivers_no_more_records_than_the_capacity(bench: Bench) -> None:
    assert len(await bench.offsets(3)) == 3
    assert len(await bench.offsets(100)) == 17


async def test_a_record_fetched_twice_is_delivered_once(bench: Bench) -> None:
    first = await bench.offsets()
    bench.fake.seek(partition(0), 0)
    assert await bench.offsets() == []
    assert len(first) == 20


# --- errors of a poll -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        CorruptRecordException(),
        NoOffsetForPartitionError(),
        RecordTooLargeError(),
        UnsupportedCodecError(),
    ],
)
async def test_after_an_error_every_partition_continues_at_its_next_offset(
    error: KafkaError, bench: Bench
) -> None:
    assert len(await bench.offsets(14)) == 14  # all of 0, four of 1
    bench.fake.fill(0, 5, start=10)
    bench.fake.polls.append(error)
    bench.fake.seeks.clear()
    assert await bench.offsets() == []
    assert sorted(await bench.offsets()) == [
        *((0, offset) for offset in range(10, 15)),
        *((1, offset) for offset in range(4, 10)),
    ]
    assert sorted(bench.fake.seeks) == [(partition(0), 10), (partition(1), 4)]
    assert bench.count("resyncs") == 1


async def test_a_record_that_cannot_be_fetched_halts_and_is_not_skipped(bench: Bench) -> None:
    bench.fake.polls.extend([CorruptRecordException()] * TRIES_BEFORE_HALT)
    for _ in range(TRIES_BEFORE_HALT - 1):
        assert await bench.offsets() == []
    with pytest.raises(Halt, match="CorruptRecordException"):
        await bench.offsets()
    assert bench.fake.commits == []


async def test_after_an_error_polls_stay_bounded_and_fetch_only_after_a_pause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_backoff(monkeypatch, 2.0)
    bench.fake.polls.append(CorruptRecordException())
    assert await bench.offsets() == []
    bench.fake.seeks.clear()
    failed_at, polls = time.monotonic(), 0
    while not (offsets := await bench.offsets()):
        polls += 1
        assert not bench.fake.seeks, "a seek makes aiokafka fetch at once"
        assert time.monotonic() - failed_at < 60
    assert time.monotonic() - failed_at >= 1.0, "half of the longest pause"
    assert polls >= 3, "each was a quarter of a second"
    assert len(offsets) == 20


async def test_the_count_of_errors_is_reset_once_every_partition_has_progressed(
    bench: Bench,
) -> None:
    for start in (0, 10):
        bench.fake.polls.extend([CorruptRecordException()] * (TRIES_BEFORE_HALT - 1))
        for _ in range(TRIES_BEFORE_HALT - 1):
            assert await bench.offsets() == []
        assert len(await bench.offsets()) == 20
        for number in (0, 1):
            bench.fake.fill(number, 10, start=start + 10)


async def test_an_empty_fetch_or_one_of_other_partitions_does_not_reset_the_count(
    bench: Bench,
) -> None:
    bench.fake.polls.append(CorruptRecordException())
    assert await bench.offsets() == []
    assert len(await bench.offsets(10)) == 10, "all of 0, none of 1"
    assert await bench.offsets(0) == []
    bench.fake.polls.extend([CorruptRecordException()] * (TRIES_BEFORE_HALT - 1))
    for _ in range(TRIES_BEFORE_HALT - 2):
        assert await bench.offsets() == []
    with pytest.raises(Halt, match="CorruptRecordException"):
        await bench.offsets()


@pytest.mark.parametrize(("position", "beginning", "lost"), [(10, 25, 15), (10, 0, 0), (10, 10, 0)])
async def test_records_deleted_by_kafka_are_counted_exactly(
    position: int, beginning: int, lost: int, bench: Bench
) -> None:
    before = await bench.consumer.poll(Capacity(100))
    bench.fake.log[partition(0)] = list(range(beginning, beginning + 4))
    bench.fake.beginnings[partition(0)] = beginning
    bench.fake.polls.append(OffsetOutOfRangeError({partition(0): position}))
    assert await bench.offsets() == []
    assert bench.count("lost_to_retention") == lost
    for delivery in before:
        bench.consumer.complete(delivery)
    assert await bench.offsets() == [(0, offset) for offset in range(beginning, beginning + 4)]


async def test_a_gap_at_the_end_of_a_partition_is_committed_once_all_before_it_is_finished(
    bench: Bench,
) -> None:
    bench.fake.end_in_gap(0, 13)
    deliveries = await bench.consumer.poll(Capacity(100))
    for delivery in deliveries[1:]:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.stored == {partition(0): 0, partition(1): 10}
    bench.consumer.complete(deliveries[0])
    await bench.consumer.commit()
    assert bench.fake.stored == {partition(0): 13, partition(1): 10}


async def test_a_failed_request_for_the_beginning_after_a_deletion_is_repeated(
    bench: Bench,
) -> None:
    bench.fake.beginnings[partition(0)] = 5
    bench.fake.beginnings_failures.append(KafkaConnectionError())
    for _ in range(2):
        bench.fake.polls.append(OffsetOutOfRangeError({partition(0): 0}))
        assert await bench.offsets(1) == []
    assert bench.count("lost_to_retention") == 5
    assert await bench.offsets(1) == [(0, 5)]


async def test_a_deletion_in_a_revoked_partition_counts_no_loss(bench: Bench) -> None:
    bench.fake.polls.append(OffsetOutOfRangeError({partition(7): 0}))
    assert await bench.offsets() == []
    assert bench.count("lost_to_retention") == 0
    assert partition(7) not in {tp for tp, _ in bench.fake.seeks}


async def test_jobs_in_flight_before_a_deletion_go_on_and_are_committed_with_it(
    bench: Bench,
) -> None:
    before = await bench.consumer.poll(Capacity(10))
    bench.fake.beginnings[partition(0)] = 15
    bench.fake.polls.append(OffsetOutOfRangeError({partition(0): 10}))
    await bench.offsets()
    assert all(map(bench.consumer.still_assigned, before))
    await bench.consumer.commit()
    assert bench.fake.stored.get(partition(0), 0) == 0
    for delivery in before:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 15


async def test_jobs_in_flight_of_a_topic_made_anew_complete_nothing_in_it(bench: Bench) -> None:
    old = await bench.consumer.poll(Capacity(10))
    bench.fake.beginnings[partition(0)] = 5
    bench.fake.polls.append(OffsetOutOfRangeError({partition(0): 10}))
    await bench.offsets()
    for delivery in old:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.count("stale_completions") == 10
    assert bench.fake.commits == [{partition(0): 5}], "the new base"


# --- topics created anew while this process was paused --------------------------------------------


def recreate(bench: Bench, count: int) -> None:
    """Replace the topic by one with `count` records in partition 0, as seen after a pause."""
    bench.fake.stored.clear()
    bench.fake.log = {partition(0): list(range(count))}


@pytest.mark.parametrize("finished", [0, 7, 10])
@pytest.mark.parametrize("count", [11, 30])
async def test_a_topic_created_anew_during_a_pause_is_read_from_its_beginning(
    finished: int, count: int, bench: Bench
) -> None:
    old = await bench.consumer.poll(Capacity(10))
    for delivery in old[:finished]:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    recreate(bench, count)
    beyond = await bench.consumer.poll(Capacity(100))
    assert beyond[0].offset == 10, "the old position"
    for delivery in (*old[finished:], *beyond):
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 0
    assert bench.count("recreated_partitions") >= 1
    assert await bench.offsets() == [(0, offset) for offset in range(count)]
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 0, "what was finished before completes nothing"


async def test_a_topic_created_anew_is_noticed_although_nothing_is_due(bench: Bench) -> None:
    for delivery in await bench.consumer.poll(Capacity(100)):
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    recreate(bench, 10)  # exactly as many records as before: no fetch fails
    assert await bench.offsets() == []
    await bench.consumer._committer.check(bench.consumer._membership)
    assert await bench.offsets() == [(0, offset) for offset in range(10)]
    assert bench.count("recreated_partitions") == 2
    await bench.consumer._committer.check(bench.consumer._membership)
    assert bench.count("recreated_partitions") == 2


async def test_a_partition_created_anew_delays_no_commit_of_another(bench: Bench) -> None:
    for delivery in await bench.consumer.poll(Capacity(100)):
        bench.consumer.complete(delivery)
    del bench.fake.stored[partition(0)]
    bench.fake.beginnings_failures.append(UnknownTopicOrPartitionError())  # deleted, not yet there
    await bench.consumer.commit()
    assert bench.fake.stored == {partition(1): 10}
    assert bench.count("recreated_partitions") == 0
    await bench.consumer.commit()
    assert bench.fake.stored == {partition(0): 0, partition(1): 10}
    assert bench.count("recreated_partitions") == 1


@pytest.mark.parametrize("error", [KafkaConnectionError(), TimeoutError(), RuntimeError()])
async def test_committed_offsets_that_cannot_be_read_restart_nothing(
    error: BaseException, bench: Bench
) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    bench.consumer.complete(delivery)
    bench.fake.committed_failure = error
    await bench.consumer.commit()
    await bench.consumer._committer.check(bench.consumer._membership)
    assert bench.fake.commits == []
    bench.fake.committed_failure = None
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 1}]
    assert bench.count("recreated_partitions") == 0


@pytest.mark.parametrize("held", [None, 2, 9])
async def test_an_offset_committed_by_others_after_an_expulsion_is_no_new_topic(
    held: int | None, bench: Bench
) -> None:
    deliveries = await bench.consumer.poll(Capacity(10))
    for delivery in deliveries[:5]:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    bench.consumer.complete(deliveries[5])
    if held is None:  # the group was empty, and an operator has deleted or set its offsets
        del bench.fake.stored[partition(0)]
    else:
        bench.fake.stored[partition(0)] = held
    bench.fake.commit_failures.extend([CommitFailedError()] * 2)  # again before the rebalance
    bench.fake.seeks.clear()
    await bench.consumer.commit()
    assert (bench.count("recreated_partitions"), bench.fake.seeks) == (0, [])
    await bench.fake.rebalance([0, 1])
    assert (await bench.offsets())[0] == (0, held or 0)


async def test_all_committed_offsets_are_read_at_once(bench: Bench) -> None:
    reads = bench.fake.committed_reads
    for delivery in await bench.consumer.poll(Capacity(100)):
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 10, partition(1): 10}]
    assert bench.fake.committed_reads == reads + 1


# --- committing -----------------------------------------------------------------------------------


async def test_an_offset_is_committed_only_when_all_before_it_are_finished(bench: Bench) -> None:
    deliveries = await bench.consumer.poll(Capacity(10))
    for delivery in deliveries[3:]:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.commits == []
    for delivery in (deliveries[0], deliveries[1]):
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 2}]
    bench.consumer.complete(deliveries[2])
    await bench.consumer.commit()
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 2}, {partition(0): 10}]


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (CommitFailedError(), "rebalanced"),
        (IllegalStateError(), "rebalanced"),
        (KafkaConnectionError(), "failed"),
        (TimeoutError(), "failed"),
        (OSError(), "failed"),
    ],
)
async def test_a_failed_commit_is_due_again(failure: Exception, outcome: str, bench: Bench) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    bench.consumer.complete(delivery)
    bench.fake.commit_failures.append(failure)
    await bench.consumer.commit()
    assert bench.count("commits", outcome=outcome) == 1
    assert bench.consumer.commit_age_s() > 0
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 1}]
    assert bench.consumer.commit_age_s() == 0


async def test_the_commit_age_grows_while_no_commit_is_possible(bench: Bench) -> None:
    await bench.consumer.commit()
    [delivery] = await bench.consumer.poll(Capacity(1))
    await bench.fake.listener.on_partitions_revoked(set(bench.fake.assignment()))
    bench.consumer.complete(delivery)
    await bench.consumer.commit()
    age_s = bench.consumer.commit_age_s()
    assert age_s > 0
    await bench.consumer.commit()
    assert bench.consumer.commit_age_s() > age_s, "an impossible commit does not reset the age"


async def test_close_commits_the_finished_offsets(bench: Bench) -> None:
    for delivery in await bench.consumer.poll(Capacity(100)):
        bench.consumer.complete(delivery)
    assert sum(bench.consumer.lags().values()) == 0
    await bench.consumer.close()
    assert bench.fake.commits == [{partition(0): 10, partition(1): 10}]
    assert bench.fake.stopped


async def test_jobs_finished_while_another_member_leaves_are_committed_after_the_rebalance(
    bench: Bench,
) -> None:
    deliveries = await bench.consumer.poll(Capacity(100))
    await bench.fake.listener.on_partitions_revoked(set(bench.fake.assignment()))
    for delivery in deliveries:
        bench.consumer.complete(delivery)
    closing = asyncio.create_task(bench.consumer.close())
    await asyncio.sleep(0)
    assert not bench.fake.stopped
    bench.fake.publish_assignment([0, 1])
    await bench.fake.listener.on_partitions_assigned(set(bench.fake.assignment()))
    await closing
    assert bench.fake.commits == [{partition(0): 10, partition(1): 10}]


async def test_lag_counts_unfinished_records(bench: Bench) -> None:
    assert sum(bench.consumer.lags().values()) == 20
    deliveries = await bench.consumer.poll(Capacity(10))
    bench.consumer.complete(deliveries[0])
    assert sum(bench.consumer.lags().values()) == 19


# --- rebalances -----------------------------------------------------------------------------------


async def test_a_retained_partition_continues_at_its_next_offset(bench: Bench) -> None:
    deliveries = await bench.consumer.poll(Capacity(7))
    bench.consumer.complete(deliveries[0])
    await bench.fake.rebalance([0])
    assert bench.fake.stored[partition(0)] == 1, "a revocation commits finished offsets"
    assert bench.fake.positions[partition(0)] == 7
    assert await bench.offsets() == [(0, 7), (0, 8), (0, 9)]
    for delivery in deliveries[1:]:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 7
    assert bench.count("stale_completions") == 0


async def test_a_reassigned_partition_starts_at_the_committed_offset(bench: Bench) -> None:
    old = await bench.consumer.poll(Capacity(7))
    await bench.fake.rebalance([1])
    assert not bench.consumer.still_assigned(old[0])
    bench.fake.stored[partition(0)] = 3
    await bench.fake.rebalance([0, 1])
    assert not bench.consumer.still_assigned(old[5])
    for delivery in old:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 3
    assert bench.count("stale_completions") == 7
    again = [offset for number, offset in await bench.offsets() if number == 0]
    assert again == list(range(3, 10))


async def test_a_retained_partition_with_a_foreign_commit_starts_at_that_commit(
    bench: Bench,
) -> None:
    old = await bench.consumer.poll(Capacity(7))
    bench.fake.stored[partition(0)] = 5
    await bench.fake.rebalance([0])
    assert not bench.consumer.still_assigned(old[6])
    assert await bench.offsets() == [(0, offset) for offset in range(5, 10)]


async def test_a_partition_never_committed_starts_at_its_beginning(bench: Bench) -> None:
    bench.fake.beginnings[partition(2)] = 40
    bench.fake.fill(2, 2, start=40)
    await bench.fake.rebalance([2])
    assert await bench.offsets() == [(2, 40), (2, 41)]


async def test_records_of_a_new_assignment_wait_for_its_callback(bench: Bench) -> None:
    deliveries = await bench.consumer.poll(Capacity(4))
    for delivery in deliveries[:2]:
        bench.consumer.complete(delivery)
    await bench.fake.listener.on_partitions_revoked(set())
    bench.fake.fill(2, 3)
    bench.fake.publish_assignment([0, 2])
    poll = asyncio.create_task(bench.consumer.poll(Capacity(100)))
    for _ in range(20):
        await asyncio.sleep(0)
    await bench.fake.listener.on_partitions_assigned({partition(0), partition(2)})
    found = positions(await asyncio.wait_for(poll, 5)) + await bench.offsets()
    assert sorted(found) == [
        *((0, offset) for offset in range(4, 10)),
        *((2, offset) for offset in range(3)),
    ]


async def test_an_assignment_that_cannot_be_taken_over_halts(bench: Bench) -> None:
    bench.next_ones.extend(FakeConsumer() for _ in range(REBUILDS_BEFORE_HALT))
    for each in (bench.fake, *bench.next_ones):
        each.committed_failure = KafkaConnectionError()
    await bench.fake.rebalance([0])
    with pytest.raises(Halt, match="assignment"):
        await bench.until_halt()
    assert bench.fake.commits == []


async def test_a_revocation_survives_a_failed_commit(bench: Bench) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    bench.consumer.complete(delivery)
    bench.fake.commit_failures.append(KafkaConnectionError())
    await bench.fake.rebalance([0, 1])
    assert bench.consumer.still_assigned(delivery)
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 1


# --- back-pressure --------------------------------------------------------------------------------


async def test_a_partition_with_a_full_span_is_paused_and_later_resumed(bench: Bench) -> None:
    bench.fake.fill(0, 3 * SPAN, start=10)
    stuck, *others = [
        delivery
        for delivery in await bench.consumer.poll(Capacity(SPAN + 10))
        if delivery.partition == 0
    ]
    for delivery in others:
        bench.consumer.complete(delivery)
    await bench.offsets()
    assert bench.fake.paused() == {partition(0)}
    bench.consumer.complete(stuck)
    assert (0, SPAN + 10) in await bench.offsets()
    assert bench.fake.paused() == set()


async def test_without_capacity_no_record_is_delivered_but_polls_keep_the_membership(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await bench.offsets(0) == []
    monkeypatch.setattr(module, "IDLE_POLL_S", 0.0)
    assert IDLE_POLL_S > 0
    assert await bench.offsets(0) == []
    assert bench.fake.paused() == {partition(0), partition(1)}
    assert len(await bench.offsets()) == 20
    assert bench.fake.paused() == set()


async def test_partitions_are_paused_again_after_a_rebalance(bench: Bench) -> None:
    bench.fake.fill(0, 3 * SPAN, start=10)
    await bench.offsets()
    await bench.fake.rebalance([0, 1])
    assert bench.fake.paused() == set()
    await bench.offsets()
    assert partition(0) in bench.fake.paused()


async def test_nothing_is_fetched_between_two_assignments(bench: Bench) -> None:
    await bench.fake.listener.on_partitions_revoked(set())
    bench.fake.polls.extend([NoOffsetForPartitionError(partition(0))] * 9)
    assert await bench.offsets() == []
    assert len(bench.fake.polls) == 9, "a fetch would have failed: there is no position"
    bench.fake.polls.clear()
    await bench.fake.listener.on_partitions_assigned({partition(0), partition(1)})
    assert len(await bench.offsets()) > 0


# --- a new consumer -------------------------------------------------------------------------------


async def test_jobs_in_flight_still_complete_after_the_consumer_was_replaced(bench: Bench) -> None:
    deliveries = await bench.consumer.poll(Capacity(7))
    old = bench.fake
    old.polls.append(KafkaError("82 FENCED_INSTANCE_ID"))
    await bench.rebuilt()
    assert old.stopped
    assert all(bench.consumer.still_assigned(delivery) for delivery in deliveries)
    rest = await bench.offsets()
    assert rest == [(0, 7), (0, 8), (0, 9), *((1, offset) for offset in range(10))]
    for delivery in deliveries:
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 7}]
    assert bench.count("consumer_rebuilds") == 1
    assert bench.count("stale_completions") == 0


@pytest.mark.parametrize("task", ["fetch_ended", "coordination_ended"])
async def test_a_consumer_whose_background_task_stopped_is_replaced(
    task: str, bench: Bench
) -> None:
    assert len(await bench.offsets(3)) == 3
    getattr(bench.fake, task).set_result(None)
    assert bench.consumer.broken is not None
    await bench.rebuilt()
    assert bench.consumer.broken is None
    assert len(await bench.offsets()) == 17


@pytest.mark.parametrize("error", [ConsumerStoppedError(), AssertionError(), KafkaError()])
async def test_any_error_that_is_not_about_a_record_replaces_the_consumer(
    error: Exception, bench: Bench
) -> None:
    bench.fake.polls.append(error)
    await bench.rebuilt()
    assert len(await bench.offsets()) == 20


async def test_a_fetch_cancelled_inside_aiokafka_replaces_the_consumer(bench: Bench) -> None:
    bench.fake.polls.append(asyncio.CancelledError())
    await bench.rebuilt()
    assert len(await bench.offsets()) == 20


async def test_a_hanging_fetch_of_the_old_consumer_does_not_block_the_new_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_MS", 5)
    bench.fake.held_back = asyncio.Event()
    assert await bench.offsets() == []
    bench.consumer.rebuild("a test")
    await bench.rebuilt()
    assert len(await bench.offsets()) == 20


async def test_finished_offsets_are_committed_before_the_consumer_is_replaced(bench: Bench) -> None:
    old = bench.fake
    for delivery in await bench.consumer.poll(Capacity(4)):
        bench.consumer.complete(delivery)
    bench.consumer.rebuild("a test")
    await bench.rebuilt()
    assert old.commits == [{partition(0): 4}]
    assert (0, 4) in await bench.offsets()


async def test_callbacks_of_a_replaced_consumer_have_no_effect(bench: Bench) -> None:
    old = bench.fake
    deliveries = await bench.consumer.poll(Capacity(3))
    bench.consumer.rebuild("a test")
    await bench.rebuilt()
    bench.consumer.complete(deliveries[0])
    old.stored = {}
    await old.listener.on_partitions_revoked(set())
    await old.listener.on_partitions_assigned({partition(5)})
    assert bench.consumer.still_assigned(deliveries[1])
    assert bench.fake.commits == []
    assert len(await bench.offsets()) == 17


async def test_an_unavailable_broker_is_retried_any_number_of_times(
    bench: Bench,
) -> None:
    for _ in range(3 * REBUILDS_BEFORE_HALT):
        bench.next_ones.append(FakeConsumer())
        bench.next_ones[-1].start_failure = KafkaConnectionError()
        bench.next_ones[-1].group = [0, 1]
    bench.consumer.rebuild("a test")
    await bench.rebuilt()
    assert bench.next_ones == deque()
    assert bench.count("consumer_rebuilds") == 1
    assert len(await bench.offsets()) == 20


async def test_a_number_of_consumers_without_a_successful_poll_halts(bench: Bench) -> None:
    bench.next_ones.extend(FakeConsumer() for _ in range(REBUILDS_BEFORE_HALT))
    for each in (bench.fake, *bench.next_ones):
        each.polls.append(KafkaError("82 FENCED_INSTANCE_ID"))
    with pytest.raises(Halt, match="FENCED"):
        await bench.until_halt()
    assert bench.count("consumer_rebuilds") == REBUILDS_BEFORE_HALT


async def test_a_denied_client_halts_at_once_and_names_the_setting(
    bench: Bench,
) -> None:
    bench.fake.polls.append(GroupAuthorizationFailedError("dragoman"))
    with pytest.raises(Halt, match=r"kafka\.group_id"):
        await bench.offsets()


async def test_a_denied_commit_halts(bench: Bench) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    bench.consumer.complete(delivery)
    bench.fake.commit_failures.append(TopicAuthorizationFailedError())
    await bench.consumer.commit()
    with pytest.raises(Halt, match="rights"):
        await bench.offsets()


async def test_a_commit_on_a_broken_connection_is_due_again(bench: Bench) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    bench.consumer.complete(delivery)
    bench.fake.commit_failures.append(RuntimeError("the handler is closed"))  # uvloop's
    await bench.consumer.commit()
    assert not bench.fake.commits
    await bench.consumer.commit()
    assert bench.fake.commits


async def test_a_stopped_committer_halts(bench: Bench) -> None:
    (task,) = (each for each in asyncio.all_tasks() if each.get_name() == "committer")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(Halt, match="commits"):
        await bench.offsets()


async def test_a_denied_new_consumer_halts(bench: Bench) -> None:
    bench.next_ones.append(FakeConsumer())
    bench.next_ones[0].start_failure = GroupAuthorizationFailedError("dragoman")
    bench.consumer.rebuild("a test")
    with pytest.raises(Halt, match="refuses"):
        await bench.until_halt()


# --- slow fetches and commits ---------------------------------------------------------------------


async def test_a_fetch_that_hangs_in_a_rebalance_blocks_no_poll_and_loses_no_record(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_MS", 5)
    bench.fake.held_back = asyncio.Event()
    for _ in range(3):
        assert await asyncio.wait_for(bench.offsets(), 5) == []
    bench.fake.held_back.set()
    assert len(await bench.offsets(8)) == 8, "no more than the present capacity"
    assert await bench.offsets(0) == []
    assert len(await bench.offsets()) == 12


async def test_records_fetched_during_a_new_assignment_are_fetched_again_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_MS", 5)
    bench.fake.held_back = asyncio.Event()
    await bench.offsets()
    await bench.fake.listener.on_partitions_revoked(set())
    bench.fake.publish_assignment([0])
    bench.fake.held_back.set()
    assert await bench.offsets() == [], "the callback has not run"
    await bench.fake.listener.on_partitions_assigned({partition(0)})
    assert await bench.offsets() == [(0, offset) for offset in range(10)]


async def test_a_completion_during_a_commit_is_in_the_next_commit(bench: Bench) -> None:
    first, second = await bench.consumer.poll(Capacity(2))
    bench.consumer.complete(first)
    bench.fake.commit_gate = asyncio.Event()
    commit = asyncio.create_task(bench.consumer.commit())
    await eventually(lambda: bench.fake.commits, timeout_s=30, what="a running commit")
    bench.consumer.complete(second)
    bench.fake.commit_gate.set()
    await commit
    await bench.consumer.commit()
    assert bench.fake.commits == [{partition(0): 1}, {partition(0): 2}]


async def test_a_commit_that_hangs_is_bounded_and_due_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    [delivery] = await bench.consumer.poll(Capacity(1))
    bench.consumer.complete(delivery)
    bench.fake.commit_gate = asyncio.Event()
    await bench.consumer._committer.commit(bench.consumer._membership, 0.01)
    assert bench.count("commits", outcome="failed") == 1
    assert bench.consumer.commits is None, "a broker that does not answer counts as unavailable"
    bench.fake.commit_gate = None
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 1


async def test_a_commit_whose_reply_was_lost_is_recognised(bench: Bench) -> None:
    deliveries = await bench.consumer.poll(Capacity(7))
    for delivery in deliveries[:4]:
        bench.consumer.complete(delivery)
    bench.fake.commit_gate = asyncio.Event()
    await bench.consumer._committer.commit(
        bench.consumer._membership, 0.01
    )  # no reply, but committed
    bench.fake.commit_gate = None
    bench.fake.commit_failures.append(KafkaConnectionError())  # the commit at the revocation
    await bench.fake.rebalance([0, 1])
    assert bench.consumer.still_assigned(deliveries[6])
    assert (0, 7) in await bench.offsets()


async def test_nothing_is_committed_between_two_assignments(bench: Bench) -> None:
    [first, second] = await bench.consumer.poll(Capacity(2))
    bench.consumer.complete(first)
    await bench.fake.listener.on_partitions_revoked(set())
    bench.consumer.complete(second)
    bench.fake.stored[partition(0)] = 9  # committed by another member meanwhile
    bench.fake.publish_assignment([0])
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 9
    await bench.fake.listener.on_partitions_assigned({partition(0)})
    assert await bench.offsets() == [(0, 9)]


# --- losses ---------------------------------------------------------------------------------------


async def test_a_loss_is_committed_and_not_counted_again_by_a_later_assignment(
    bench: Bench,
) -> None:
    for number, beginning in ((0, 25), (1, 31)):
        bench.fake.stored[partition(number)] = 10
        bench.fake.log[partition(number)] = list(range(beginning, beginning + 4))
        bench.fake.beginnings[partition(number)] = beginning
    await bench.fake.rebalance([0, 1])
    for number in (0, 1):
        bench.fake.polls.append(OffsetOutOfRangeError({partition(number): 10}))
        await bench.offsets(1)
    assert bench.count("lost_to_retention") == 15 + 21
    await bench.consumer.commit()
    assert bench.fake.stored == {partition(0): 25, partition(1): 31}
    await bench.fake.rebalance([0, 1])
    assert len(await bench.offsets()) == 8
    assert bench.count("lost_to_retention") == 15 + 21


async def test_a_late_out_of_range_error_counts_no_loss(bench: Bench) -> None:
    assert len(await bench.offsets()) == 20
    bench.fake.fill(0, 2, start=10)
    bench.fake.beginnings[partition(0)] = 5
    bench.fake.polls.append(OffsetOutOfRangeError({partition(0): 3}))
    assert await bench.offsets() == []
    assert bench.count("lost_to_retention") == 0
    assert await bench.offsets() == [(0, 10), (0, 11)]


async def test_an_offset_beyond_the_end_restarts_at_the_beginning_and_is_committed_at_once(
    bench: Bench,
) -> None:
    bench.fake.stored[partition(0)] = 5_000
    await bench.fake.rebalance([0])
    bench.fake.polls.append(OffsetOutOfRangeError({partition(0): 5_000}))
    assert await bench.offsets() == []
    await bench.consumer.commit()
    assert bench.fake.stored[partition(0)] == 0
    assert len(await bench.offsets()) == 10


async def test_a_group_that_lost_its_offsets_starts_at_the_beginning(bench: Bench) -> None:
    for delivery in await bench.consumer.poll(Capacity(10)):
        bench.consumer.complete(delivery)
    await bench.consumer.commit()
    bench.fake.stored.clear()
    await bench.fake.rebalance([0])
    assert await bench.offsets() == [(0, offset) for offset in range(10)]


# --- priority classes -----------------------------------------------------------------------------

URGENT, BULK = TopicPartition("urgent", 0), TopicPartition("bulk", 0)


@pytest.fixture
async def priorities(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Two topics with one partition each: a backlog of `bulk`, and no record of `urgent`."""
    monkeypatch.setattr(module, "COMMIT_EVERY_S", 3_600.0)
    use_backoff(monkeypatch, 0.001)
    made = Bench(monkeypatch, "urgent:8", "bulk")
    await made.consumer.start(Deadline.after(5))
    made.fake.fill(BULK, 15)
    await made.fake.rebalance([URGENT, BULK])
    yield made
    await made.consumer.close()


async def topics(bench: Bench, jobs: int, **capacities: int) -> Counter[str]:
    deliveries = await bench.consumer.poll(Capacity(jobs, capacities))
    return Counter(delivery.topic for delivery in deliveries)


async def test_records_of_a_class_without_capacity_stay_buffered(
    priorities: Bench,
) -> None:
    assert await topics(priorities, 10, urgent=10, bulk=0) == {}
    assert priorities.fake.paused() == set(), "a paused partition would lose what is buffered"
    priorities.fake.fill(URGENT, 3)
    assert await topics(priorities, 10, urgent=10, bulk=0) == {"urgent": 3}
    assert await topics(priorities, 17, urgent=7, bulk=10) == {"bulk": 10}


async def test_each_class_is_polled_up_to_its_capacity_and_all_up_to_the_total(
    priorities: Bench,
) -> None:
    priorities.fake.fill(URGENT, 15)
    assert await topics(priorities, 20, urgent=9, bulk=4) == {"urgent": 9, "bulk": 4}
    assert await topics(priorities, 8, urgent=6, bulk=6) == {"urgent": 6, "bulk": 2}


async def test_records_of_a_class_without_capacity_do_not_count_as_undelivered(
    priorities: Bench,
) -> None:
    await topics(priorities, 10, urgent=10, bulk=0)
    assert priorities.consumer.undelivered() == 0
    await topics(priorities, 14, urgent=10, bulk=4)
    assert priorities.consumer.undelivered() == 11
    assert priorities.consumer.lags() == {"urgent": 0, "bulk": 15}
    assert sum(priorities.consumer.lags().values()) == 15


async def test_a_worker_without_a_partition_of_the_class_with_capacity_keeps_its_membership(
    priorities: Bench,
) -> None:
    await priorities.fake.rebalance([BULK])
    before = priorities.fake.asked
    assert await topics(priorities, 10, urgent=10, bulk=0) == {}
    assert priorities.fake.asked > before, "the poll keeps the membership"


async def test_without_capacity_in_any_class_no_record_is_delivered(priorities: Bench) -> None:
    assert await topics(priorities, 0, urgent=0, bulk=0) == {}


async def test_an_error_in_the_second_class_loses_no_record_of_the_first(
    priorities: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    priorities.fake.fill(URGENT, 3)
    getmany = priorities.fake.getmany

    async def failing(*partitions: TopicPartition, **options: int) -> object:
        if BULK in partitions:
            priorities.fake.polls.append(CorruptRecordException())
        return await getmany(*partitions, **options)

    monkeypatch.setattr(priorities.fake, "getmany", failing)
    assert await topics(priorities, 20, urgent=10, bulk=10) == {"urgent": 3}
    monkeypatch.setattr(priorities.fake, "getmany", getmany)
    assert await topics(priorities, 20, urgent=10, bulk=10) == {"bulk": 10}
    assert await topics(priorities, 20, urgent=10, bulk=10) == {"bulk": 5}


async def test_a_fetch_that_waits_holds_up_other_partitions_for_a_tenth_of_a_second_at_most(
    priorities: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Bench(monkeypatch)
    await one.consumer.start(Deadline.after(5))
    await one.consumer.close()
    assert priorities.fake.options["fetch_max_wait_ms"] == 100
    assert one.fake.options["fetch_max_wait_ms"] == 100


async def test_a_commit_after_an_outage_is_expected_again(bench: Bench) -> None:
    deliveries = await bench.consumer.poll(Capacity(2))
    bench.consumer.complete(deliveries[0])
    bench.fake.commit_failures.append(KafkaConnectionError())
    await bench.consumer.commit()
    assert bench.consumer.commits is None, "no commit is expected while no broker answers"
    await bench.consumer.commit()
    bench.consumer.complete(deliveries[1])
    assert bench.consumer.commits == 1
