"""Where do deliveries come from? Kafka, with commits of our own that never pass unfinished work."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    CommitFailedError,
    CorruptRecordException,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnsupportedCodecError,
)

from dragoman_schemas.connections import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt
from dragoman_worker.kafka.connection import client_options, connected, quietly
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics
from dragoman_worker.offsets import PartitionOffsets
from dragoman_worker.ports import Delivery

POLL_MS: Final = 250
MAX_POLL_RECORDS: Final = 500
IDLE_POLL_S: Final = 10.0
"""With no room we do not poll; this often we do all the same, paused, to stay in the group."""
COMMIT_EVERY_S: Final = 0.5
COMMIT_TIMEOUT_S: Final = 10.0
FETCH_MAX_BYTES: Final = 16 * 1024 * 1024
REBALANCE_TIMEOUT_MS: Final = 60_000
TRIES_BEFORE_HALT: Final = 5
_RESYNC: Final = (
    CorruptRecordException,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    UnsupportedCodecError,
)


class KafkaSource(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """A member of the consumer group. One a process: aiokafka's sticky assignor is global."""

    def __init__(
        self, settings: KafkaSettings, *, partition_span: int, client_id: str, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._span = partition_span
        self._client_id = client_id
        self._metrics = metrics
        self._log = logger()
        self._consumer: Any = None
        self._offsets: dict[TopicPartition, PartitionOffsets] = {}
        self._epoch = 0
        self._assigned = asyncio.Event()
        self._committing = asyncio.Lock()
        self._committer: asyncio.Task[None] | None = None
        self._failure: Halt | None = None
        self._failures_in_a_row = 0
        self._polled_at = time.monotonic()
        self._committed_at = time.monotonic()

    # --- life -------------------------------------------------------------------------------------

    async def start(self, within: Deadline) -> None:
        """Join the group. Raises Unreachable."""
        await connected(self._new_consumer, self._servers, within)
        self._committer = asyncio.create_task(self._commit_forever(), name="committer")

    async def close(self) -> None:
        """Commit what is finished and leave the group."""
        if self._committer is not None:
            self._committer.cancel()
            await asyncio.gather(self._committer, return_exceptions=True)
        if self._consumer is not None:
            await self.commit()
            await quietly(self._consumer.stop)

    @property
    def _servers(self) -> str:
        return self._settings.bootstrap_servers

    def _new_consumer(self) -> Any:
        session_ms = int(self._settings.session_timeout_s * 1000)
        consumer = AIOKafkaConsumer(
            **client_options(self._settings),
            group_id=self._settings.group_id,
            client_id=self._client_id,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            partition_assignment_strategy=(StickyPartitionAssignor,),
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=max(300, min(3_000, session_ms // 5)),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            # JoinGroup blocks for the rebalance timeout: the request must outlast it
            request_timeout_ms=REBALANCE_TIMEOUT_MS + 10_000,
            fetch_max_bytes=FETCH_MAX_BYTES,
            max_partition_fetch_bytes=FETCH_MAX_BYTES // 4,
        )
        consumer.subscribe(list(self._settings.topic_names), listener=self)
        self._consumer = consumer  # its callbacks run, and need it, before its start has returned
        return consumer

    # --- poll -------------------------------------------------------------------------------------

    async def poll(self, room: int) -> Sequence[Delivery]:
        """At most `room` new deliveries; see the port."""
        if self._failure is not None:
            raise self._failure
        if room == 0 and time.monotonic() - self._polled_at < IDLE_POLL_S:
            return ()
        # A new assignment is published before its callback has run: it has no positions yet.
        if not await self._assigned_soon():
            return ()
        self._pause_and_resume(room)
        self._polled_at = time.monotonic()
        try:
            batches = await self._consumer.getmany(
                timeout_ms=POLL_MS if room else 0, max_records=max(1, min(room, MAX_POLL_RECORDS))
            )
        except OffsetOutOfRangeError as error:
            await self._out_of_range(error.args[0])
            return ()
        except _RESYNC as error:
            self._resync(error)
            return ()
        except KafkaError as error:
            raise Halt(f"the Kafka consumer cannot go on: {type(error).__name__}") from error
        await self._assigned.wait()  # a rebalance may have begun meanwhile: hold the records
        self._failures_in_a_row = 0
        return self._begun(batches)

    async def _assigned_soon(self) -> bool:
        if not self._assigned.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_MS / 1000):
                    await self._assigned.wait()
        return self._assigned.is_set()

    def _begun(self, batches: Mapping[TopicPartition, Iterable[Any]]) -> list[Delivery]:
        return [
            Delivery(
                topic=partition.topic,
                partition=partition.partition,
                offset=record.offset,
                epoch=offsets.epoch,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
                timestamp_ms=record.timestamp,
            )
            for partition, records in batches.items()
            if (offsets := self._offsets.get(partition)) is not None
            for record in records
            if offsets.begin(record.offset)
        ]

    def _pause_and_resume(self, room: int) -> None:
        paused = self._consumer.paused()
        full = {
            partition
            for partition, offsets in self._offsets.items()
            if room == 0 or offsets.span >= self._span
        } & self._consumer.assignment()
        if pause := full - paused:
            self._consumer.pause(*pause)
        if resume := paused - full:
            self._consumer.resume(*resume)

    async def _out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Kafka deleted records before we read them, or the topic was made anew."""
        try:
            beginnings = await self._consumer.beginning_offsets(list(positions))
        except KafkaError as error:
            self._resync(error)  # the next poll asks again
            return
        for partition, position in positions.items():
            if partition not in self._consumer.assignment():
                continue  # it went away while we asked
            beginning = beginnings[partition]
            lost = max(0, beginning - position)
            self._metrics.lost_to_retention.inc(lost)
            self._log.critical(
                "lost_to_retention",
                topic=partition.topic,
                partition=partition.partition,
                wanted=position,
                beginning=beginning,
                lost=lost,
            )
            self._track(partition, beginning)
            self._consumer.seek(partition, beginning)

    def _resync(self, error: KafkaError) -> None:
        """getmany throws away what it had drained when one partition fails: fetch it again."""
        if not self._assigned.is_set():
            return  # between two assignments nobody has a position; the callback will seek
        self._metrics.resyncs.inc()
        self._failures_in_a_row += 1
        self._log.error("resync", error=type(error).__name__, times=self._failures_in_a_row)
        if self._failures_in_a_row >= TRIES_BEFORE_HALT:
            raise Halt(
                f"a record cannot be fetched ({type(error).__name__}) and none is ever skipped; "
                "see docs/operations.md"
            ) from error
        for partition in self._consumer.assignment():
            if (offsets := self._offsets.get(partition)) is not None:
                self._consumer.seek(partition, offsets.next_offset)

    # --- complete and commit ----------------------------------------------------------------------

    def complete(self, delivery: Delivery) -> None:
        """Mark as finished; an old epoch's delivery belongs to somebody else now."""
        offsets = self._offsets.get(TopicPartition(delivery.topic, delivery.partition))
        if offsets is None or offsets.epoch != delivery.epoch:
            self._metrics.stale_completions.inc()
            return
        offsets.complete(delivery.offset)

    def owned(self, delivery: Delivery) -> bool:
        """Whether completing the delivery would still count."""
        offsets = self._offsets.get(TopicPartition(delivery.topic, delivery.partition))
        return offsets is not None and offsets.epoch == delivery.epoch

    async def commit(self) -> None:
        """Commit every watermark that has moved. Never raises: what failed is due again."""
        async with self._committing:
            due = self._due()
            if not due:
                self._committed_at = time.monotonic()
                return
            outcome = await self._try_commit({tp: mark for tp, (_, mark) in due.items()})
            self._metrics.commits.labels(outcome).inc()
            if outcome == "ok":
                self._committed_at = time.monotonic()
                for offsets, mark in due.values():
                    offsets.committed = mark

    async def _try_commit(self, marks: dict[TopicPartition, int]) -> str:
        try:
            async with asyncio.timeout(COMMIT_TIMEOUT_S):  # aiokafka retries without end
                await self._consumer.commit(marks)
        except (CommitFailedError, IllegalStateError):
            return "rebalanced"
        except (KafkaError, TimeoutError, OSError) as error:
            self._log.warning("commit_failed", error=type(error).__name__)
            return "failed"
        return "ok"

    def _due(self) -> dict[TopicPartition, tuple[PartitionOffsets, int]]:
        assigned = self._consumer.assignment()
        return {
            partition: (offsets, offsets.watermark)
            for partition, offsets in self._offsets.items()
            if partition in assigned and offsets.watermark > offsets.committed
        }

    async def _commit_forever(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            await self.commit()

    # --- readings ---------------------------------------------------------------------------------

    def lag(self) -> int:
        """Records of our partitions that are not finished, as far as the broker has told."""
        total = 0
        for partition in self._consumer.assignment() if self._consumer else ():
            offsets = self._offsets.get(partition)
            end = self._consumer.highwater(partition)
            if offsets is not None and end is not None:
                total += max(0, end - offsets.watermark)
        return total

    def commit_age_s(self) -> float:
        """Seconds that finished work has gone uncommitted; 0 while there is none."""
        if self._consumer is None or not self._due():
            return 0.0
        return time.monotonic() - self._committed_at

    # --- rebalance: called by aiokafka, which only logs what these raise -------------------------

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, revoked: Iterable[TopicPartition]
    ) -> None:
        """Hold the poll loop and commit; work in hand goes on."""
        del revoked
        self._assigned.clear()
        await self.commit()

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, assigned: Iterable[TopicPartition]
    ) -> None:
        """Go on where we were with retained partitions, and at the committed offset with others."""
        try:
            await self._adopt(set(assigned))
        except Exception as error:  # noqa: BLE001  aiokafka would swallow it and fetch blindly
            self._failure = Halt(f"an assignment could not be taken over: {where(error)}")
        finally:
            self._assigned.set()

    async def _adopt(self, assigned: set[TopicPartition]) -> None:
        committed = await self._committed(assigned)
        fresh = [partition for partition in assigned if committed[partition] is None]
        beginnings = await self._consumer.beginning_offsets(fresh) if fresh else {}
        for partition in set(self._offsets) - assigned:
            del self._offsets[partition]
        for partition in assigned:
            start = committed[partition]
            start = beginnings[partition] if start is None else start
            offsets = self._offsets.get(partition)
            if offsets is None or offsets.committed != start:  # new, or others made progress
                offsets = self._track(partition, start)
            self._consumer.seek(partition, offsets.next_offset)
        self._log.info("assigned", partitions=len(assigned), epoch=self._epoch)

    async def _committed(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int | None]:
        ordered = list(partitions)
        offsets = await asyncio.gather(*map(self._consumer.committed, ordered))
        return dict(zip(ordered, offsets, strict=True))

    def _track(self, partition: TopicPartition, base: int) -> PartitionOffsets:
        self._epoch += 1
        offsets = self._offsets[partition] = PartitionOffsets(epoch=self._epoch, base=base)
        return offsets
