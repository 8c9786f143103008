"""One consumer's group membership: assignments, positions and pauses.

Each membership has its own callbacks: those of a replaced consumer have no effect.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import Final

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka import group_consumer
from dragoman_worker.kafka.offsets import PartitionOffsets
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity

ADOPT_WITHIN_S: Final = 30.0
"""Timeout of taking an assignment over.

aiokafka's request for the committed offset may wait for ever if its refresh task has died.
"""
ASK_WITHIN_S: Final = 5.0
STOP_WITHIN_S: Final = 5.0


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """One consumer and the partitions that the group has assigned to it."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        client_id: str,
        partitions: Partitions,
        commit: Callable[[], Awaitable[None]],
        metrics: Metrics,
    ) -> None:
        self._partitions = partitions
        self._commit = commit
        self._metrics = metrics
        self._log = logger()
        self._assigned = asyncio.Event()
        self._retired = False
        self._failure: str | None = None
        self.may_commit = False
        """False between two assignments: others may have committed for the same partitions."""
        self.consumer = group_consumer.build_consumer(settings, client_id=client_id, listener=self)

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group; return with the first assignment."""
        await self.consumer.start()

    async def stop(self) -> None:
        """Leave the group. Never raises; bounded."""
        self._retired = True
        self.may_commit = False
        await group_consumer.leave_and_close(self.consumer, STOP_WITHIN_S)

    @property
    def broken(self) -> str | None:
        """Why this consumer has to be replaced; None while it works."""
        if self._failure is not None:
            return self._failure
        if (error := group_consumer.pending_error(self.consumer)) is not None:
            return f"the group could not be rejoined: {where(error)}"
        dead = group_consumer.dead_tasks(self.consumer)
        return f"aiokafka's {' and '.join(dead)} stopped" if dead else None

    @property
    def answered(self) -> bool:
        """Whether any broker answers this consumer."""
        return group_consumer.answers(self.consumer)

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
        read = {
            each: group_consumer.next_position(self.consumer, each)
            for each in self.consumer.assignment()
        }
        return {each: position for each, position in read.items() if position is not None}

    def has_passed(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Whether each assigned partition is beyond its given position, or at its end."""
        return self._assigned.is_set() and all(
            offset > positions.get(each, -1) or not group_consumer.undelivered(self.consumer, each)
            for each, offset in self.next_offsets().items()
        )

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
        return sum(group_consumer.undelivered(self.consumer, each) for each in unpaused)

    def backlog(self) -> int:
        """Return how many fetchable offsets have not been delivered, whatever the capacity."""
        if not self._assigned.is_set():
            return 0
        every = self.consumer.assignment()
        return sum(group_consumer.undelivered(self.consumer, each) for each in every)

    async def out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on at the beginning: Kafka deleted unread records, or the topic was recreated."""
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                beginnings = await self.consumer.beginning_offsets(list(positions))
        except (KafkaError, OSError, TimeoutError) as error:
            self._log.warning("beginnings_unknown", error=type(error).__name__)
            if self._assigned.is_set():
                self.seek_all()  # the next poll raises the error again
            return
        for partition, position in positions.items():
            offsets = self._partitions.get(partition)
            if offsets is None or partition not in self.consumer.assignment():
                continue  # revoked during the request
            if position < offsets.next_offset:  # late error: delivery has continued since
                self.consumer.seek(partition, offsets.next_offset)
                continue
            self._report_loss(partition, position, beginnings[partition])
            if beginnings[partition] < position:  # another topic of this name
                self._partitions.track(partition, beginnings[partition], offsets.committed)
            else:  # what was delivered before is in flight, and nobody could deliver it again
                offsets.pass_gap(beginnings[partition])
            # `committed` stays the broker's offset, which differs from the new commit offset: that
            # is committed once what was in flight is finished, and then no later assignment counts
            # the same loss again.
            self.consumer.seek(partition, beginnings[partition])

    async def restart(self, partitions: Iterable[TopicPartition]) -> None:
        """Read partitions from the beginning, in a new generation: the topic was created anew.

        The beginnings are committed first. Kafka accepts that only from a member of the present
        generation, so what another member or an operator has committed since this one was expelled
        is not mistaken for a new topic. Raises what `commit` raises.
        """
        before = {partition: self._partitions.get(partition) for partition in partitions}
        async with asyncio.timeout(ASK_WITHIN_S):
            beginnings = await self.consumer.beginning_offsets(list(before))
        await self.consumer.commit(beginnings)
        for partition, beginning in beginnings.items():
            old = self._partitions.get(partition)
            if old is None or old is not before[partition]:
                continue  # revoked or restarted during the requests
            self._report_recreation(partition, old, beginning)
            self._partitions.track(partition, beginning, beginning).acknowledge(beginning)
            self.consumer.seek(partition, beginning)

    def _report_recreation(
        self, partition: TopicPartition, old: PartitionOffsets, beginning: int
    ) -> None:
        self._metrics.recreated_partitions.inc()
        self._log.error(
            "topic_recreated",
            topic=partition.topic,
            partition=partition.partition,
            acknowledged=old.acknowledged,
            beginning=beginning,
        )

    def _report_loss(self, partition: TopicPartition, position: int, beginning: int) -> None:
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

    # --- rebalance: called by aiokafka, which only logs what these raise -------------------------

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, revoked: Iterable[TopicPartition]
    ) -> None:
        """Pause the poll loop and commit; jobs in flight go on."""
        del revoked
        self._assigned.clear()
        if not self._retired:
            await self._commit()
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
        committed = await group_consumer.committed_offsets(self.consumer, assigned)
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
