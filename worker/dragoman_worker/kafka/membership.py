"""One consumer's membership of the group: joining, assignments, positions and pauses, leaving.

Each membership has its own callbacks: those of a replaced consumer have no effect. The only module
that reads aiokafka's private attributes: it has no public health check.
"""
# ruff: noqa: SLF001  see above

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.client import ConnectionGroup
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from dragoman_connections.kafka_batches.repair import ReadableResponses
from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka.connection import quietly
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger, where
from dragoman_worker.ports import Capacity

FETCH_MAX_BYTES: Final = 16 * 1024 * 1024
FETCH_MAX_WAIT_MS: Final = 100
"""Longest wait of a fetch for the first record; aiokafka's default is 500.

A broker handles one fetch of this consumer at a time. While it waits for a record of a partition
that is empty, a partition that becomes readable (another class, a resumed or a new one) is not
fetched.
"""
BOX_MAX_WAIT_MS: Final = 10
"""The same in a box, whose broker answers no fetch before its wait is over.

A job's median time was 91 ms with a wait of 100, and 4.7 ms with 10.
"""
REBALANCE_TIMEOUT_MS: Final = 60_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
"""Interval of heartbeats, whose replies announce a rebalance.

So this is also the delay with which a member learns that another died and that its partitions will
be assigned.
"""
METADATA_MAX_AGE_MS: Final = 30_000
"""Longest delay until new partitions of a topic are noticed; aiokafka's default is 5 minutes."""
UNANSWERED_S: Final = 10.0
"""Seconds without an answer after which a broker counts as silent.

A fetch is answered within its wait, with records or without.
"""
ASK_WITHIN_S: Final = 5.0
ADOPT_WITHIN_S: Final = 30.0
"""Timeout of taking an assignment over.

aiokafka's request for the committed offset may wait for ever if its refresh task has died.
"""
STOP_WITHIN_S: Final = 5.0


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """One consumer and the partitions that the group has assigned to it."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        client_id: str,
        partitions: Partitions,
        commit: Callable[[Membership], Awaitable[None]],
        in_box: bool,
    ) -> None:
        self._partitions = partitions
        self._commit = commit
        self._log = logger()
        self._assigned = asyncio.Event()
        self._retired = False
        self._failure: str | None = None
        self.may_commit = False
        """False between two assignments: others may have committed for the same partitions."""
        self.consumer = build_consumer(
            settings,
            client_id=client_id,
            listener=self,
            max_wait_ms=BOX_MAX_WAIT_MS if in_box else FETCH_MAX_WAIT_MS,
        )

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group; return with the first assignment."""
        await self.consumer.start()

    async def stop(self) -> None:
        """Leave the group. Never raises; bounded."""
        self._retired = True
        self.may_commit = False
        await leave_and_close(self.consumer, STOP_WITHIN_S)

    @property
    def broken(self) -> str | None:
        """Why this consumer has to be replaced; None while it works."""
        if self._failure is not None:
            return self._failure
        if (error := pending_error(self.consumer)) is not None:
            return f"the group could not be rejoined: {where(error)}"
        dead = dead_tasks(self.consumer)
        return f"aiokafka's {' and '.join(dead)} stopped" if dead else None

    @property
    def answered(self) -> bool:
        """Whether any broker answers this consumer."""
        return answers(self.consumer)

    # --- positions --------------------------------------------------------------------------------

    @property
    def is_assigned(self) -> bool:
        """Whether every partition has its tracker and position; not during a rebalance."""
        return self._assigned.is_set()

    async def assigned_within(self, seconds: float) -> bool:
        """Wait up to `seconds` for the end of a rebalance; return whether it is over."""
        if not self._assigned.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._assigned.wait()
        return self._assigned.is_set()

    def seek_all(self) -> None:
        """Seek to the next offset to deliver in every partition."""
        for partition in self.consumer.assignment():
            if (offsets := self._partitions.get(partition)) is not None:
                self.consumer.seek(partition, offsets.next_offset)

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return the next offset to deliver of every partition."""
        tracked = ((each, self._partitions.get(each)) for each in self.consumer.assignment())
        return {each: offsets.next_offset for each, offsets in tracked if offsets is not None}

    def positions(self) -> dict[TopicPartition, int]:
        """Return the consumer's position in every partition that has one."""
        read = {each: next_position(self.consumer, each) for each in self.consumer.assignment()}
        return {each: position for each, position in read.items() if position is not None}

    def has_passed(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Whether each assigned partition is beyond its given position, or at its end."""
        return self._assigned.is_set() and all(
            offset > positions.get(each, -1) or not fetchable(self.consumer, each)
            for each, offset in self.next_offsets().items()
        )

    async def beginnings(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each. Raises KafkaError, OSError and TimeoutError."""
        async with asyncio.timeout(ASK_WITHIN_S):
            found: dict[TopicPartition, int] = await self.consumer.beginning_offsets(
                list(partitions)
            )
        return found

    def pause_and_resume(self, *, capacity: int, span: int) -> None:
        """Pause partitions whose span is used up, or all without capacity; resume the others."""
        paused = self.consumer.paused()
        full = {
            partition
            for partition, offsets in self._partitions.items()
            if capacity == 0 or offsets.span >= span
        } & self.consumer.assignment()
        if pause := full - paused:
            self.consumer.pause(*pause)
        if resume := paused - full:
            self.consumer.resume(*resume)

    def open_partitions(self, priorities: Container[str]) -> list[TopicPartition]:
        """Return the partitions of the topics `priorities` that are not paused."""
        unpaused = self.consumer.assignment() - self.consumer.paused()
        return [partition for partition in unpaused if partition.topic in priorities]

    def undelivered(self, capacity: Capacity) -> int:
        """Return how many offsets could be delivered now, within capacity, and have not been."""
        if not self._assigned.is_set():
            return 0
        unpaused = self.consumer.assignment() - self.consumer.paused()
        if (priorities := capacity.priorities) is not None:
            unpaused = {each for each in unpaused if priorities.get(each.topic)}
        return sum(fetchable(self.consumer, each) for each in unpaused)

    def backlog(self) -> int:
        """Return how many fetchable offsets have not been delivered, whatever the capacity."""
        if not self._assigned.is_set():
            return 0
        every = self.consumer.assignment()
        return sum(fetchable(self.consumer, each) for each in every)

    # --- rebalance: called by aiokafka, which only logs what these raise -------------------------

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, revoked: Iterable[TopicPartition]
    ) -> None:
        """Pause the poll loop and commit; jobs in flight go on."""
        del revoked
        self._assigned.clear()
        if not self._retired:
            await self._commit(self)
        self.may_commit = False

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, assigned: Iterable[TopicPartition]
    ) -> None:
        """Continue retained partitions where they were, and others at the committed offset."""
        if self._retired:
            return
        try:
            async with asyncio.timeout(ADOPT_WITHIN_S):
                await self._adopt(set(assigned))
        except Exception as error:  # noqa: BLE001  aiokafka would only log it and fetch on
            self._failure = f"an assignment could not be taken over: {where(error)}"

    async def _adopt(self, assigned: set[TopicPartition]) -> None:
        committed = await committed_offsets(self.consumer, assigned)
        fresh = [partition for partition in assigned if partition not in committed]
        beginnings = await self.consumer.beginning_offsets(fresh) if fresh else {}
        if self._retired:
            return
        self._partitions.keep_only(assigned)
        for partition in assigned:
            held = committed.get(partition)
            offsets = self._partitions.get(partition)
            if offsets is None or not offsets.continues(held):  # new, or moved by others
                base = beginnings[partition] if held is None else held
                offsets = self._partitions.track(partition, base, held)
            offsets.acknowledge(held)
            self.consumer.seek(partition, offsets.next_offset)
        # Nothing was awaited since the first seek: no fetch can have happened in between.
        self.may_commit = True
        self._assigned.set()
        self._log.info("assigned", partitions=len(assigned), generation=self._partitions.generation)


# --- the consumer, and what aiokafka does not say of it -------------------------------------------


def build_consumer(
    settings: KafkaSettings,
    *,
    client_id: str,
    listener: ConsumerRebalanceListener,
    max_wait_ms: int,
) -> Any:
    """Return a consumer of the settings' topics, not started.

    It commits no offset, resets no position and decodes no record by itself.
    """
    session_ms = int(settings.session_timeout_s * 1000)
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=settings.group_id,
        client_id=client_id,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        partition_assignment_strategy=(StickyPartitionAssignor,),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=max(300, min(HEARTBEAT_INTERVAL_MS, session_ms // 5)),
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        # JoinGroup blocks for the rebalance timeout: the request must outlast it
        request_timeout_ms=REBALANCE_TIMEOUT_MS + 10_000,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
        fetch_max_wait_ms=max_wait_ms,
        fetch_max_bytes=FETCH_MAX_BYTES,
        max_partition_fetch_bytes=FETCH_MAX_BYTES // 4,
    )
    client = consumer._client
    client.send = ReadableResponses(client.send, budget=FETCH_MAX_BYTES, on_defect=_report_defect)
    consumer.subscribe(list(settings.topic_names), listener=listener)
    return consumer


def _report_defect(offset: int, error: Exception) -> None:
    logger().error("batch_unreadable", offset=offset, where=where(error))


def dead_tasks(consumer: Any) -> list[str]:
    """Return the names of the consumer's background tasks that have stopped, which is not reported.

    Without the fetch task no record is fetched. Without the coordination task the group soon
    expels this member.
    """
    tasks = {
        "fetch task": consumer._fetcher._fetch_task,
        "coordination task": consumer._coordinator._coordination_task,
    }
    return [name for name, task in tasks.items() if task.done()]


def answers(consumer: Any) -> bool:
    """Whether any broker answers: its connection is open and no request is overdue.

    The coordinator's connection does not count: a JoinGroup request waits for the other members.
    """
    latest = time.monotonic() - UNANSWERED_S
    return any(
        connection.connected() and (not connection._requests or connection._last_action > latest)
        for (_, group), connection in consumer._client._conns.items()
        if group == ConnectionGroup.DEFAULT
    )


def pending_error(consumer: Any) -> BaseException | None:
    """Return the error that stopped the coordination and that the next `getmany` would raise.

    No `getmany` runs during a rebalance, and none is started without an assignment.
    """
    error: BaseException | None = consumer._coordinator._pending_exception
    return error


def next_position(consumer: Any, partition: TopicPartition) -> int | None:
    """Return the offset from which an assigned partition is read next; None before it has one.

    It is past the records that `getmany` has returned, and past the gaps behind them.
    """
    state = consumer._subscription.subscription.assignment.state_value(partition)
    return state.position if state.has_valid_position else None


async def committed_offsets(
    consumer: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets, from one request; partitions without one are missing.

    aiokafka's `committed` sends a request for each partition. Both wait for a coordinator for ever.
    """
    found = await consumer._coordinator.fetch_committed_offsets(list(partitions))
    return {partition: each.offset for partition, each in found.items()}


def fetchable(consumer: Any, partition: TopicPartition) -> int:
    """Return how many offsets of an assigned partition could be fetched now, as last reported.

    Counted up to the last stable offset, because records of an open transaction cannot be fetched.
    Counted from the consumer's position, which skips the gaps that transaction markers leave.
    """
    end: int | None = consumer.last_stable_offset(partition)
    position = next_position(consumer, partition)
    return 0 if end is None or position is None else max(0, end - position)


async def leave_and_close(consumer: Any, timeout_s: float) -> None:
    """Leave the group and disconnect, in any state of the consumer."""
    await quietly(consumer.stop, timeout_s)
    await quietly(consumer._client.close, timeout_s)  # a failed stop leaves connections open
