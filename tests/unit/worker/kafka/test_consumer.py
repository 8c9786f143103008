"""Does the source ever lose its place? Through errors, rebalances, deletions and failed commits."""

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
    UnsupportedCodecError,
)
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt
from dragoman_worker.kafka import committer, group_consumer, resyncs
from dragoman_worker.kafka import consumer as module
from dragoman_worker.kafka.consumer import (
    IDLE_POLL_S,
    REBUILDS_BEFORE_HALT,
    KafkaConsumer,
)
from dragoman_worker.kafka.resyncs import TRIES_BEFORE_HALT
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery
from dragoman_worker.process.parent_link import GroupMember
from support.fakes.fake_consumer import TOPIC, FakeConsumer, partition
from support.processes.waiting import eventually

SPAN = 20


class Bench:
    """A source on a fake consumer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *topics: str) -> None:
        self.metrics = Metrics(CollectorRegistry())
        monkeypatch.setattr(group_consumer, "AIOKafkaConsumer", self._made)
        self.consumer = FakeConsumer()
        self.joined: list[GroupMember] = []
        self.made = 0
        self.next_ones: deque[FakeConsumer] = deque()
        self.source = KafkaConsumer(
            KafkaSettings(topics=topics or (TOPIC,)),
            partition_span=SPAN,
            client_id="w1",
            metrics=self.metrics,
            joined=self.joined.append,
        )

    def _made(self, **options: object) -> FakeConsumer:
        if self.made:  # a new consumer for the same log and group
            old = self.consumer
            self.consumer = self.next_ones.popleft() if self.next_ones else FakeConsumer()
            self.consumer.log, self.consumer.stored = old.log, old.stored
            self.consumer.beginnings = old.beginnings
            if self.consumer.group is None:
                self.consumer.group = sorted(tp.partition for tp in old.assignment()) or old.group
        self.made += 1
        self.consumer.options = dict(options)
        return self.consumer

    async def offsets(self, capacity: int = 100) -> list[tuple[int, int]]:
        return places(await self.source.poll(Capacity(capacity)))

    async def until_halt(self) -> None:
        async with asyncio.timeout(10):
            while True:
                await self.source.poll(Capacity(100))

    async def rebuilt(self) -> None:
        """Poll until a new consumer has its assignment."""
        old = self.consumer
        async with asyncio.timeout(10):
            while self.consumer is old or self.source.rebuilding:
                assert not await self.source.poll(Capacity(1))

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"dragoman_{name}_total", labels) or 0.0


def places(deliveries: Sequence[Delivery]) -> list[tuple[int, int]]:
    return [(delivery.partition, delivery.offset) for delivery in deliveries]


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Assigned partitions 0 and 1 with ten records each, and no committer of its own."""
    monkeypatch.setattr(committer, "COMMIT_EVERY_S", 3_600.0)
    monkeypatch.setattr(resyncs, "LONGEST_BACKOFF_S", 0.001)
    made = Bench(monkeypatch)
    await made.source.start(Deadline.after(5))
    made.consumer.fill(0, 10)
    made.consumer.fill(1, 10)
    await made.consumer.rebalance([0, 1])
    yield made
    await made.source.close()


# --- the consumer that is asked for ---------------------------------------------------------------


async def test_the_consumer_never_commits_or_resets_or_decodes_by_itself(bench: Bench) -> None:
    options = bench.consumer.options
    assert options["enable_auto_commit"] is False
    assert options["auto_offset_reset"] == "none"
    assert options["isolation_level"] == "read_committed"
    assert not {"value_deserializer", "key_deserializer"} & set(options)
    timeout_ms, rebalance_ms = options["request_timeout_ms"], options["rebalance_timeout_ms"]
    assert isinstance(timeout_ms, int)
    assert isinstance(rebalance_ms, int)
    assert timeout_ms > rebalance_ms


# --- polling --------------------------------------------------------------------------------------


async def test_records_come_as_they_are(bench: Bench) -> None:
    [delivery] = await bench.source.poll(Capacity(1))
    assert (delivery.topic, delivery.partition, delivery.offset) == (TOPIC, 0, 0)
    assert (delivery.key, delivery.value) == (b"k", b"value 0")
    assert delivery.headers == (("traceparent", b"t"),)
    assert delivery.timestamp_ms == 1_000
    assert bench.source.still_assigned(delivery)


async def test_no_more_records_come_than_there_is_room_for(bench: Bench) -> None:
    assert len(await bench.offsets(3)) == 3
    assert len(await bench.offsets(100)) == 17


async def test_a_record_given_twice_is_delivered_once(bench: Bench) -> None:
    first = await bench.offsets()
    bench.consumer.seek(partition(0), 0)
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
async def test_after_an_error_every_partition_goes_on_where_delivery_stopped(
    error: KafkaError, bench: Bench
) -> None:
    assert len(await bench.offsets(14)) == 14  # all of 0, four of 1
    bench.consumer.fill(0, 5, start=10)
    bench.consumer.polls.append(error)
    bench.consumer.seeks.clear()
    assert await bench.offsets() == []
    assert sorted(await bench.offsets()) == [
        *((0, offset) for offset in range(10, 15)),
        *((1, offset) for offset in range(4, 10)),
    ]
    assert sorted(bench.consumer.seeks) == [(partition(0), 10), (partition(1), 4)]
    assert bench.count("resyncs") == 1


async def test_a_record_that_can_never_be_fetched_halts_and_is_not_skipped(bench: Bench) -> None:
    bench.consumer.polls.extend([CorruptRecordException()] * TRIES_BEFORE_HALT)
    for _ in range(TRIES_BEFORE_HALT - 1):
        assert await bench.offsets() == []
    with pytest.raises(Halt, match="CorruptRecordException"):
        await bench.offsets()
    assert bench.consumer.commits == []


async def test_after_an_error_polls_go_on_bounded_and_ask_again_only_after_a_pause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resyncs, "LONGEST_BACKOFF_S", 2.0)
    monkeypatch.setattr(resyncs, "FIRST_BACKOFF_S", 2.0)
    bench.consumer.polls.append(CorruptRecordException())
    assert await bench.offsets() == []
    bench.consumer.seeks.clear()
    failed_at, polls = time.monotonic(), 0
    while not (offsets := await bench.offsets()):
        polls += 1
        assert not bench.consumer.seeks, "a seek makes aiokafka fetch at once"
        assert time.monotonic() - failed_at < 10
    assert time.monotonic() - failed_at >= 1.0, "half of the longest pause"
    assert polls >= 3, "each was a quarter of a second"
    assert len(offsets) == 20


def test_pauses_grow_to_the_longest_however_many_there_were() -> None:
    first, longest = resyncs.FIRST_BACKOFF_S, resyncs.LONGEST_BACKOFF_S
    assert first / 2 <= resyncs.backoff_s(0) <= first
    for tries in (10, 1_024, 1_000_000):
        assert longest / 2 <= resyncs.backoff_s(tries) <= longest


async def test_errors_are_forgiven_once_every_partition_has_gone_on(bench: Bench) -> None:
    for start in (0, 10):
        bench.consumer.polls.extend([CorruptRecordException()] * (TRIES_BEFORE_HALT - 1))
        for _ in range(TRIES_BEFORE_HALT - 1):
            assert await bench.offsets() == []
        assert len(await bench.offsets()) == 20
        for number in (0, 1):
            bench.consumer.fill(number, 10, start=start + 10)


async def test_neither_an_empty_fetch_nor_others_records_forgive_an_error(bench: Bench) -> None:
    bench.consumer.polls.append(CorruptRecordException())
    assert await bench.offsets() == []
    assert len(await bench.offsets(10)) == 10, "all of 0, none of 1"
    assert await bench.offsets(0) == []
    bench.consumer.polls.extend([CorruptRecordException()] * (TRIES_BEFORE_HALT - 1))
    for _ in range(TRIES_BEFORE_HALT - 2):
        assert await bench.offsets() == []
    with pytest.raises(Halt, match="CorruptRecordException"):
        await bench.offsets()


@pytest.mark.parametrize(("position", "beginning", "lost"), [(10, 25, 15), (10, 0, 0), (10, 10, 0)])
async def test_what_kafka_deleted_is_counted_exactly(
    position: int, beginning: int, lost: int, bench: Bench
) -> None:
    await bench.offsets()
    bench.consumer.log[partition(0)] = list(range(beginning, beginning + 4))
    bench.consumer.beginnings[partition(0)] = beginning
    bench.consumer.polls.append(OffsetOutOfRangeError({partition(0): position}))
    assert await bench.offsets() == []
    assert bench.count("lost_to_retention") == lost
    assert await bench.offsets() == [(0, offset) for offset in range(beginning, beginning + 4)]


async def test_a_broker_that_fails_beside_a_deletion_is_asked_again(bench: Bench) -> None:
    bench.consumer.beginnings[partition(0)] = 5
    bench.consumer.beginnings_failures.append(KafkaConnectionError())
    for _ in range(2):
        bench.consumer.polls.append(OffsetOutOfRangeError({partition(0): 0}))
        assert await bench.offsets(1) == []
    assert bench.count("lost_to_retention") == 5
    assert await bench.offsets(1) == [(0, 5)]


async def test_a_deletion_in_a_partition_that_has_gone_is_nobody_s_loss_here(bench: Bench) -> None:
    bench.consumer.polls.append(OffsetOutOfRangeError({partition(7): 0}))
    assert await bench.offsets() == []
    assert bench.count("lost_to_retention") == 0
    assert partition(7) not in {tp for tp, _ in bench.consumer.seeks}


async def test_what_was_in_hand_before_a_deletion_completes_nothing_after_it(bench: Bench) -> None:
    old = await bench.source.poll(Capacity(10))
    bench.consumer.beginnings[partition(0)] = 5
    bench.consumer.polls.append(OffsetOutOfRangeError({partition(0): 10}))
    await bench.offsets()
    for delivery in old:
        bench.source.complete(delivery)
    await bench.source.commit()
    assert bench.count("stale_completions") == 10
    assert bench.consumer.commits == []


# --- committing -----------------------------------------------------------------------------------


async def test_only_what_everything_before_is_finished_is_committed(bench: Bench) -> None:
    deliveries = await bench.source.poll(Capacity(10))
    for delivery in deliveries[3:]:
        bench.source.complete(delivery)
    await bench.source.commit()
    assert bench.consumer.commits == []
    for delivery in (deliveries[0], deliveries[1]):
        bench.source.complete(delivery)
    await bench.source.commit()
    assert bench.consumer.commits == [{partition(0): 2}]
    bench.source.complete(deliveries[2])
    await bench.source.commit()
    await bench.source.commit()
    assert bench.consumer.commits == [{partition(0): 2}, {partition(0): 10}]


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
    [delivery] = await bench.source.poll(Capacity(1))
    bench.source.complete(delivery)
    bench.consumer.commit_failures.append(failure)
    await bench.source.commit()
    assert bench.count("commits", outcome=outcome) == 1
    assert bench.source.commit_age_s() > 0
    await bench.source.commit()
    assert bench.consumer.commits == [{partition(0): 1}]
    assert bench.source.commit_age_s() == 0


async def test_what_waits_for_a_consumer_that_may_commit_grows_old(bench: Bench) -> None:
    await bench.source.commit()
    [delivery] = await bench.source.poll(Capacity(1))
    await bench.consumer.listener.on_partitions_revoked(set(bench.consumer.assignment()))
    bench.source.complete(delivery)
    await bench.source.commit()
    age_s = bench.source.commit_age_s()
    assert age_s > 0
    await bench.source.commit()
    assert bench.source.commit_age_s() > age_s, "a commit that cannot be tried makes it no younger"


async def test_what_is_finished_is_committed_in_the_end(bench: Bench) -> None:
    for delivery in await bench.source.poll(Capacity(100)):
        bench.source.complete(delivery)
    assert sum(bench.source.lags().values()) == 0
    await bench.source.close()
    assert bench.consumer.commits == [{partition(0): 10, partition(1): 10}]
    assert bench.consumer.stopped


async def test_work_finished_while_a_sibling_leaves_is_committed_after_the_rebalance(
    bench: Bench,
) -> None:
    deliveries = await bench.source.poll(Capacity(100))
    await bench.consumer.listener.on_partitions_revoked(set(bench.consumer.assignment()))
    for delivery in deliveries:
        bench.source.complete(delivery)
    closing = asyncio.create_task(bench.source.close())
    await asyncio.sleep(0)
    assert not bench.consumer.stopped
    bench.consumer.publish_assignment([0, 1])
    await bench.consumer.listener.on_partitions_assigned(set(bench.consumer.assignment()))
    await closing
    assert bench.consumer.commits == [{partition(0): 10, partition(1): 10}]


async def test_lag_counts_what_is_not_finished(bench: Bench) -> None:
    assert sum(bench.source.lags().values()) == 20
    deliveries = await bench.source.poll(Capacity(10))
    bench.source.complete(deliveries[0])
    assert sum(bench.source.lags().values()) == 19


# --- rebalances -----------------------------------------------------------------------------------


async def test_a_retained_partition_goes_on_where_delivery_stopped(bench: Bench) -> None:
    deliveries = await bench.source.poll(Capacity(7))
    bench.source.complete(deliveries[0])
    await bench.consumer.rebalance([0])
    assert bench.consumer.stored[partition(0)] == 1, "a revocation commits what is finished"
    assert bench.consumer.positions[partition(0)] == 7
    assert await bench.offsets() == [(0, 7), (0, 8), (0, 9)]
    for delivery in deliveries[1:]:
        bench.source.complete(delivery)
    await bench.source.commit()
    assert bench.consumer.stored[partition(0)] == 7
    assert bench.count("stale_completions") == 0


async def test_a_partition_that_comes_back_starts_at_the_committed_offset(bench: Bench) -> None:
    old = await bench.source.poll(Capacity(7))
    await bench.consumer.rebalance([1])
    assert not bench.source.still_assigned(old[0])
    bench.consumer.stored[partition(0)] = 3
    await bench.consumer.rebalance([0, 1])
    assert not bench.source.still_assigned(old[5])
    for delivery in old:
        bench.source.complete(delivery)
    await bench.source.commit()
    assert bench.consumer.stored[partition(0)] == 3
    assert bench.count("stale_completions") == 7
    again = [offset for number, offset in await bench.offsets() if number == 0]
    assert again == list(range(3, 10))


async def test_a_retained_partition_that_others_moved_on_starts_anew(bench: Bench) -> None:
    old = await bench.source.poll(Capacity(7))
    bench.consumer.stored[partition(0)] = 5
    await bench.consumer.rebalance([0])
    assert not bench.source.still_assigned(old[6])
    assert await bench.offsets() == [(0, offset) for offset in range(5, 10)]


async def test_a_partition_never_committed_starts_at_its_beginning(bench: Bench) -> None:
    bench.consumer.beginnings[partition(2)] = 40
    bench.consumer.fill(2, 2, start=40)
    await bench.consumer.rebalance([2])
    assert await bench.offsets() == [(2, 40), (2, 41)]


async def test_records_of_a_new_assignment_wait_until_it_has_been_taken_over(bench: Bench) -> None:
    deliveries = await bench.source.poll(Capacity(4))
    for delivery in deliveries[:2]:
        bench.source.complete(delivery)
    await bench.consumer.listener.on_partitions_revoked(set())
    bench.consumer.fill(2, 3)
    bench.consumer.publish_assignment([0, 2])
    poll = asyncio.create_task(bench.source.poll(Capacity(100)))
    for _ in range(20):
        await asyncio.sleep(0)
    await bench.consumer.listener.on_partitions_assigned({partition(0), partition(2)})
    found = places(await asyncio.wait_for(poll, 5)) + await bench.offsets()
    assert sorted(found) == [
        *((0, offset) for offset in range(4, 10)),
        *((2, offset) for offset in range(3)),
    ]


async def test_an_assignment_that_cannot_be_taken_over_halts(bench: Bench) -> None:
    bench.next_ones.extend(FakeConsumer() for _ in range(REBUILDS_BEFORE_HALT))
    for each in (bench.consumer, *bench.next_ones):
        each.committed_failure = KafkaConnectionError()
    await bench.consumer.rebalance([0])
    with pytest.raises(Halt, match="assignment"):
        await bench.until_halt()
    assert bench.consumer.commits == []


async def test_a_revocation_does_not_fail_with_the_broker(bench: Bench) -> None:
    [delivery] = await bench.source.poll(Capacity(1))
    bench.source.complete(delivery)
    bench.consumer.commit_failures.append(KafkaConnectionError())
    await bench.consumer.rebalance([0, 1])
    assert bench.source.still_assigned(delivery)
    await bench.source.commit()
    assert bench.consumer.stored[partition(0)] == 1


# --- pressure -------------------------------------------------------------------------------------


async def test_a_partition_that_ran_far_ahead_is_paused_and_later_resumed(bench: Bench) -> None:
    bench.consumer.fill(0, 3 * SPAN, start=10)
    stuck, *others = [
        delivery
        for delivery in await bench.source.poll(Capacity(SPAN + 10))
        if delivery.partition == 0
    ]
    for delivery in others:
        bench.source.complete(delivery)
    await bench.offsets()
    assert bench.consumer.paused() == {partition(0)}
    bench.source.complete(stuck)
    assert (0, SPAN + 10) in await bench.offsets()
    assert bench.consumer.paused() == set()


async def test_without_room_nothing_is_delivered_yet_the_group_hears_of_us(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await bench.offsets(0) == []
    monkeypatch.setattr(module, "IDLE_POLL_S", 0.0)
    assert IDLE_POLL_S > 0
    assert await bench.offsets(0) == []
    assert bench.consumer.paused() == {partition(0), partition(1)}
    assert len(await bench.offsets()) == 20
    assert bench.consumer.paused() == set()


async def test_pauses_are_made_again_after_a_rebalance(bench: Bench) -> None:
    bench.consumer.fill(0, 3 * SPAN, start=10)
    await bench.offsets()
    await bench.consumer.rebalance([0, 1])
    assert bench.consumer.paused() == set()
    await bench.offsets()
    assert partition(0) in bench.consumer.paused()


async def test_nothing_is_fetched_between_two_assignments(bench: Bench) -> None:
    await bench.consumer.listener.on_partitions_revoked(set())
    bench.consumer.polls.extend([NoOffsetForPartitionError(partition(0))] * 9)
    assert await bench.offsets() == []
    assert len(bench.consumer.polls) == 9, "a fetch would have failed: nobody has a position"
    bench.consumer.polls.clear()
    await bench.consumer.listener.on_partitions_assigned({partition(0), partition(1)})
    assert len(await bench.offsets()) > 0


# --- a new consumer -------------------------------------------------------------------------------


async def test_work_in_hand_still_completes_when_the_consumer_was_replaced(bench: Bench) -> None:
    deliveries = await bench.source.poll(Capacity(7))
    old = bench.consumer
    old.polls.append(KafkaError("82 FENCED_INSTANCE_ID"))
    await bench.rebuilt()
    assert old.stopped
    assert all(bench.source.still_assigned(delivery) for delivery in deliveries)
    rest = await bench.offsets()
    assert rest == [(0, 7), (0, 8), (0, 9), *((1, offset) for offset in range(10))]
    for delivery in deliveries:
        bench.source.complete(delivery)
    await bench.source.commit()
    assert bench.consumer.commits == [{partition(0): 7}]
    assert bench.count("consumer_rebuilds") == 1
    assert bench.count("stale_completions") == 0


@pytest.mark.parametrize("task", ["fetch_ended", "coordination_ended"])
async def test_a_consumer_whose_task_ended_in_silence_is_replaced(task: str, bench: Bench) -> None:
    assert len(await bench.offsets(3)) == 3
    getattr(bench.consumer, task).set_result(None)
    assert bench.source.broken is not None
    await bench.rebuilt()
    assert bench.source.broken is None
    assert len(await bench.offsets()) == 17


@pytest.mark.parametrize("error", [ConsumerStoppedError(), AssertionError(), KafkaError()])
async def test_any_error_that_is_no_record_s_replaces_the_consumer(
    error: Exception, bench: Bench
) -> None:
    bench.consumer.polls.append(error)
    await bench.rebuilt()
    assert len(await bench.offsets()) == 20


async def test_a_fetch_that_was_cancelled_inside_the_client_replaces_it(bench: Bench) -> None:
    bench.consumer.polls.append(asyncio.CancelledError())
    await bench.rebuilt()
    assert len(await bench.offsets()) == 20


async def test_a_fetch_of_the_old_consumer_that_never_ends_holds_the_new_one_not_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_MS", 5)
    bench.consumer.held_back = asyncio.Event()
    assert await bench.offsets() == []
    bench.source.rebuild("a test asks for it")
    await bench.rebuilt()
    assert len(await bench.offsets()) == 20


async def test_what_is_finished_is_committed_before_the_old_consumer_goes(bench: Bench) -> None:
    old = bench.consumer
    for delivery in await bench.source.poll(Capacity(4)):
        bench.source.complete(delivery)
    bench.source.rebuild("a test asks for it")
    await bench.rebuilt()
    assert old.commits == [{partition(0): 4}]
    assert (0, 4) in await bench.offsets()


async def test_the_old_consumer_s_callbacks_touch_nothing(bench: Bench) -> None:
    old = bench.consumer
    deliveries = await bench.source.poll(Capacity(3))
    bench.source.rebuild("a test asks for it")
    await bench.rebuilt()
    bench.source.complete(deliveries[0])
    old.stored = {}
    await old.listener.on_partitions_revoked(set())
    await old.listener.on_partitions_assigned({partition(5)})
    assert bench.source.still_assigned(deliveries[1])
    assert bench.consumer.commits == []
    assert len(await bench.offsets()) == 17


async def test_a_broker_that_is_away_is_waited_for_however_many_tries_it_takes(
    bench: Bench,
) -> None:
    for _ in range(3 * REBUILDS_BEFORE_HALT):
        bench.next_ones.append(FakeConsumer())
        bench.next_ones[-1].start_failure = KafkaConnectionError()
        bench.next_ones[-1].group = [0, 1]
    bench.source.rebuild("a test asks for it")
    await bench.rebuilt()
    assert bench.next_ones == deque()
    assert bench.count("consumer_rebuilds") == 1
    assert len(await bench.offsets()) == 20


async def test_consumers_that_never_poll_well_halt_in_the_end(bench: Bench) -> None:
    bench.next_ones.extend(FakeConsumer() for _ in range(REBUILDS_BEFORE_HALT))
    for each in (bench.consumer, *bench.next_ones):
        each.polls.append(KafkaError("82 FENCED_INSTANCE_ID"))
    with pytest.raises(Halt, match="FENCED"):
        await bench.until_halt()
    assert bench.count("consumer_rebuilds") == REBUILDS_BEFORE_HALT


async def test_a_client_that_is_not_allowed_halts_at_once_and_says_what_to_look_at(
    bench: Bench,
) -> None:
    bench.consumer.polls.append(GroupAuthorizationFailedError("dragoman"))
    with pytest.raises(Halt, match=r"kafka\.group_id"):
        await bench.offsets()


async def test_a_commit_that_is_not_allowed_halts(bench: Bench) -> None:
    [delivery] = await bench.source.poll(Capacity(1))
    bench.source.complete(delivery)
    bench.consumer.commit_failures.append(TopicAuthorizationFailedError())
    await bench.source.commit()
    with pytest.raises(Halt, match="rights"):
        await bench.offsets()


async def test_a_commit_on_a_connection_that_just_broke_is_due_again(bench: Bench) -> None:
    [delivery] = await bench.source.poll(Capacity(1))
    bench.source.complete(delivery)
    bench.consumer.commit_failures.append(RuntimeError("the handler is closed"))  # uvloop's
    await bench.source.commit()
    assert not bench.consumer.commits
    await bench.source.commit()
    assert bench.consumer.commits


async def test_a_committer_that_has_ended_ends_the_worker(bench: Bench) -> None:
    (task,) = (each for each in asyncio.all_tasks() if each.get_name() == "committer")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(Halt, match="commits"):
        await bench.offsets()


async def test_a_new_consumer_that_is_not_allowed_halts(bench: Bench) -> None:
    bench.next_ones.append(FakeConsumer())
    bench.next_ones[0].start_failure = GroupAuthorizationFailedError("dragoman")
    bench.source.rebuild("a test asks for it")
    with pytest.raises(Halt, match="refuses"):
        await bench.until_halt()


# --- polls stay bounded, commits stay ours --------------------------------------------------------


async def test_a_fetch_that_hangs_in_a_rebalance_holds_no_poll_and_loses_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_MS", 5)
    bench.consumer.held_back = asyncio.Event()
    for _ in range(3):
        assert await asyncio.wait_for(bench.offsets(), 5) == []
    bench.consumer.held_back.set()
    assert len(await bench.offsets(8)) == 8, "no more than there is room for now"
    assert await bench.offsets(0) == []
    assert len(await bench.offsets()) == 12


async def test_records_fetched_while_the_assignment_changed_come_again_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_MS", 5)
    bench.consumer.held_back = asyncio.Event()
    await bench.offsets()
    await bench.consumer.listener.on_partitions_revoked(set())
    bench.consumer.publish_assignment([0])
    bench.consumer.held_back.set()
    assert await bench.offsets() == [], "the callback has not run"
    await bench.consumer.listener.on_partitions_assigned({partition(0)})
    assert await bench.offsets() == [(0, offset) for offset in range(10)]


async def test_a_completion_during_a_commit_is_in_the_next(bench: Bench) -> None:
    first, second = await bench.source.poll(Capacity(2))
    bench.source.complete(first)
    bench.consumer.commit_gate = asyncio.Event()
    commit = asyncio.create_task(bench.source.commit())
    await eventually(lambda: bench.consumer.commits, timeout_s=5, what="a commit under way")
    bench.source.complete(second)
    bench.consumer.commit_gate.set()
    await commit
    await bench.source.commit()
    assert bench.consumer.commits == [{partition(0): 1}, {partition(0): 2}]


async def test_a_commit_that_hangs_is_bounded_and_due_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    [delivery] = await bench.source.poll(Capacity(1))
    bench.source.complete(delivery)
    bench.consumer.commit_gate = asyncio.Event()
    await bench.source._committer.commit(0.01)
    assert bench.count("commits", outcome="failed") == 1
    assert bench.source.commits is None, "a broker that does not answer is waited for"
    bench.consumer.commit_gate = None
    await bench.source.commit()
    assert bench.consumer.stored[partition(0)] == 1


async def test_a_commit_whose_reply_was_lost_is_known_as_ours(bench: Bench) -> None:
    deliveries = await bench.source.poll(Capacity(7))
    for delivery in deliveries[:4]:
        bench.source.complete(delivery)
    bench.consumer.commit_gate = asyncio.Event()
    await bench.source._committer.commit(0.01)  # no reply, and yet it is there
    bench.consumer.commit_gate = None
    bench.consumer.commit_failures.append(KafkaConnectionError())  # that of the revocation
    await bench.consumer.rebalance([0, 1])
    assert bench.source.still_assigned(deliveries[6])
    assert (0, 7) in await bench.offsets()


async def test_nothing_is_committed_between_two_assignments(bench: Bench) -> None:
    [first, second] = await bench.source.poll(Capacity(2))
    bench.source.complete(first)
    await bench.consumer.listener.on_partitions_revoked(set())
    bench.source.complete(second)
    bench.consumer.stored[partition(0)] = 9  # another member's work, before we are back
    bench.consumer.publish_assignment([0])
    await bench.source.commit()
    assert bench.consumer.stored[partition(0)] == 9
    await bench.consumer.listener.on_partitions_assigned({partition(0)})
    assert await bench.offsets() == [(0, 9)]


# --- losses ---------------------------------------------------------------------------------------


async def test_a_loss_is_committed_and_no_later_assignment_counts_it_again(bench: Bench) -> None:
    for number, beginning in ((0, 25), (1, 31)):
        bench.consumer.stored[partition(number)] = 10
        bench.consumer.log[partition(number)] = list(range(beginning, beginning + 4))
        bench.consumer.beginnings[partition(number)] = beginning
    await bench.consumer.rebalance([0, 1])
    for number in (0, 1):
        bench.consumer.polls.append(OffsetOutOfRangeError({partition(number): 10}))
        await bench.offsets(1)
    assert bench.count("lost_to_retention") == 15 + 21
    await bench.source.commit()
    assert bench.consumer.stored == {partition(0): 25, partition(1): 31}
    await bench.consumer.rebalance([0, 1])
    assert len(await bench.offsets()) == 8
    assert bench.count("lost_to_retention") == 15 + 21


async def test_an_error_told_late_counts_no_loss(bench: Bench) -> None:
    assert len(await bench.offsets()) == 20
    bench.consumer.fill(0, 2, start=10)
    bench.consumer.beginnings[partition(0)] = 5
    bench.consumer.polls.append(OffsetOutOfRangeError({partition(0): 3}))
    assert await bench.offsets() == []
    assert bench.count("lost_to_retention") == 0
    assert await bench.offsets() == [(0, 10), (0, 11)]


async def test_offsets_beyond_the_end_begin_anew_and_are_put_right_at_once(bench: Bench) -> None:
    bench.consumer.stored[partition(0)] = 5_000
    await bench.consumer.rebalance([0])
    bench.consumer.polls.append(OffsetOutOfRangeError({partition(0): 5_000}))
    assert await bench.offsets() == []
    await bench.source.commit()
    assert bench.consumer.stored[partition(0)] == 0
    assert len(await bench.offsets()) == 10


async def test_a_group_that_lost_its_offsets_begins_anew(bench: Bench) -> None:
    for delivery in await bench.source.poll(Capacity(10)):
        bench.source.complete(delivery)
    await bench.source.commit()
    bench.consumer.stored.clear()
    await bench.consumer.rebalance([0])
    assert await bench.offsets() == [(0, offset) for offset in range(10)]


# --- lanes ----------------------------------------------------------------------------------------

URGENT, BULK = TopicPartition("urgent", 0), TopicPartition("bulk", 0)


@pytest.fixture
async def priorities(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Two topics with a partition each: a backlog of bulk, and nothing that is urgent."""
    monkeypatch.setattr(committer, "COMMIT_EVERY_S", 3_600.0)
    monkeypatch.setattr(resyncs, "LONGEST_BACKOFF_S", 0.001)
    made = Bench(monkeypatch, "urgent:8", "bulk")
    await made.source.start(Deadline.after(5))
    made.consumer.fill(BULK, 15)
    await made.consumer.rebalance([URGENT, BULK])
    yield made
    await made.source.close()


async def topics(bench: Bench, jobs: int, **capacities: int) -> Counter[str]:
    deliveries = await bench.source.poll(Capacity(jobs, capacities))
    return Counter(delivery.topic for delivery in deliveries)


async def test_nothing_comes_of_a_lane_without_room_and_it_all_stays_fetched(
    priorities: Bench,
) -> None:
    assert await topics(priorities, 10, urgent=10, bulk=0) == {}
    assert priorities.consumer.paused() == set(), "a paused partition would lose what is buffered"
    priorities.consumer.fill(URGENT, 3)
    assert await topics(priorities, 10, urgent=10, bulk=0) == {"urgent": 3}
    assert await topics(priorities, 17, urgent=7, bulk=10) == {"bulk": 10}


async def test_each_lane_brings_as_many_as_it_has_room_for_and_all_no_more_than_there_is(
    priorities: Bench,
) -> None:
    priorities.consumer.fill(URGENT, 15)
    assert await topics(priorities, 20, urgent=9, bulk=4) == {"urgent": 9, "bulk": 4}
    assert await topics(priorities, 8, urgent=6, bulk=6) == {"urgent": 6, "bulk": 2}


async def test_records_of_a_lane_without_room_do_not_count_as_withheld(priorities: Bench) -> None:
    await topics(priorities, 10, urgent=10, bulk=0)
    assert priorities.source.undelivered() == 0
    await topics(priorities, 14, urgent=10, bulk=4)
    assert priorities.source.undelivered() == 11
    assert priorities.source.lags() == {"urgent": 0, "bulk": 15}
    assert sum(priorities.source.lags().values()) == 15


async def test_a_worker_with_no_partition_of_the_lane_with_room_gets_nothing_and_stays(
    priorities: Bench,
) -> None:
    await priorities.consumer.rebalance([BULK])
    before = priorities.consumer.asked
    assert await topics(priorities, 10, urgent=10, bulk=0) == {}
    assert priorities.consumer.asked > before, "asking keeps us in the group"


async def test_with_no_room_in_any_lane_nothing_comes(priorities: Bench) -> None:
    assert await topics(priorities, 0, urgent=0, bulk=0) == {}


async def test_an_error_behind_the_first_lane_loses_nothing_of_it(
    priorities: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    priorities.consumer.fill(URGENT, 3)
    getmany = priorities.consumer.getmany

    async def failing(*partitions: TopicPartition, **options: int) -> object:
        if BULK in partitions:
            priorities.consumer.polls.append(CorruptRecordException())
        return await getmany(*partitions, **options)

    monkeypatch.setattr(priorities.consumer, "getmany", failing)
    assert await topics(priorities, 20, urgent=10, bulk=10) == {"urgent": 3}
    monkeypatch.setattr(priorities.consumer, "getmany", getmany)
    assert await topics(priorities, 20, urgent=10, bulk=10) == {"bulk": 10}
    assert await topics(priorities, 20, urgent=10, bulk=10) == {"bulk": 5}


async def test_a_broker_waits_less_long_for_one_lane_while_the_others_wait(
    priorities: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Bench(monkeypatch)
    await one.source.start(Deadline.after(5))
    await one.source.close()
    assert (
        priorities.consumer.options["fetch_max_wait_ms"] < one.consumer.options["fetch_max_wait_ms"]
    )


# --- group membership -----------------------------------------------------------------------------


async def test_a_membership_is_reported_before_its_first_assignment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch)
    in_the_rebalance = asyncio.Event()

    async def joining() -> None:
        bench.consumer.member_id = "m1"
        await in_the_rebalance.wait()

    monkeypatch.setattr(bench.consumer, "start", joining)
    starting = asyncio.create_task(bench.source.start(Deadline.after(30)))
    await eventually(lambda: bench.joined, timeout_s=10, what="a report")
    assert bench.joined == [GroupMember("dragoman", "m1")]
    assert not starting.done()
    in_the_rebalance.set()
    await starting
    await bench.source.close()


async def test_a_membership_is_reported_before_anything_that_follows_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch)

    async def joined_at_once() -> None:
        bench.consumer.member_id = "m1"

    monkeypatch.setattr(bench.consumer, "start", joined_at_once)
    await bench.source.start(Deadline.after(30))
    assert bench.joined == [GroupMember("dragoman", "m1")]
    await bench.source.close()


async def test_the_membership_of_a_new_consumer_is_reported_and_each_only_once(
    bench: Bench,
) -> None:
    bench.consumer.member_id = "m1"
    await eventually(lambda: bench.joined, timeout_s=10, what="the first report")
    bench.consumer.member_id = ""  # between two memberships the last one may still be known
    bench.source.rebuild("a test")
    await bench.rebuilt()
    bench.consumer.member_id = "m2"
    await eventually(lambda: len(bench.joined) > 1, timeout_s=10, what="the second report")
    assert [each.member for each in bench.joined] == ["m1", "m2"]
