"""What happens to one consumer from its join to its end? Assignments, positions, pauses.

Each member has callbacks of its own: those of a consumer that was replaced touch nothing.
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
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity

ADOPT_WITHIN_S: Final = 30.0
"""aiokafka's question for the committed offset may wait for ever if its refresh task has died."""
ASK_WITHIN_S: Final = 5.0
STOP_WITHIN_S: Final = 5.0


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """One consumer and the partitions that the group has given to it."""

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
        """Not between two assignments: others may have moved what we still hold."""
        self.consumer = group_consumer.build_consumer(settings, client_id=client_id, listener=self)

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group; returns with the first assignment."""
        await self.consumer.start()

    async def stop(self) -> None:
        """Leave the group. Never raises; bounded."""
        self._retired = True
        self.may_commit = False
        await group_consumer.put_away(self.consumer, STOP_WITHIN_S)

    @property
    def member_id(self) -> str:
        """The id by which the coordinator knows this consumer; empty before it has one."""
        return group_consumer.member_id(self.consumer)

    @property
    def broken(self) -> str | None:
        """Why this consumer has to be replaced; None while it works."""
        if self._failure is not None:
            return self._failure
        if (error := group_consumer.untold_error(self.consumer)) is not None:
            return f"the group could not be joined again: {where(error)}"
        dead = group_consumer.dead_tasks(self.consumer)
        return f"aiokafka's {' and '.join(dead)} ended" if dead else None

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
        """Wait a little for the end of a rebalance."""
        if not self._assigned.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._assigned.wait()
        return self._assigned.is_set()

    def seek_all(self) -> None:
        """Fetch again from where delivery stopped, in every partition."""
        for partition in self.consumer.assignment():
            if (offsets := self._partitions.get(partition)) is not None:
                self.consumer.seek(partition, offsets.next_offset)

    def places(self) -> dict[TopicPartition, int]:
        """Where delivery stands, in every partition: the offset that is next."""
        tracked = ((each, self._partitions.get(each)) for each in self.consumer.assignment())
        return {each: offsets.next_offset for each, offsets in tracked if offsets is not None}

    def has_passed(self, places: Mapping[TopicPartition, int]) -> bool:
        """Whether each partition that is still ours is further than there, or at its end."""
        return self._assigned.is_set() and all(
            here > places.get(each, -1) or not group_consumer.undelivered(self.consumer, each)
            for each, here in self.places().items()
        )

    def pause_and_resume(self, *, capacity: int, span: int) -> None:
        """Fetch only for partitions that may run further ahead; for none without room."""
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
        """The partitions of some topics that may be fetched from now."""
        unpaused = self.consumer.assignment() - self.consumer.paused()
        return [partition for partition in unpaused if partition.topic in priorities]

    def undelivered(self, capacity: Capacity) -> int:
        """Offsets that could be delivered now, there being room for them, and are not."""
        if not self._assigned.is_set():
            return 0
        open_ones = self.consumer.assignment() - self.consumer.paused()
        if (priorities := capacity.priorities) is not None:
            open_ones = {each for each in open_ones if priorities.get(each.topic)}
        return sum(group_consumer.undelivered(self.consumer, each) for each in open_ones)

    def known(self) -> int:
        """The same of all partitions that are ours, whether or not there is room."""
        if not self._assigned.is_set():
            return 0
        every = self.consumer.assignment()
        return sum(group_consumer.undelivered(self.consumer, each) for each in every)

    async def out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Kafka deleted records before we read them, or the topic was made anew."""
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                beginnings = await self.consumer.beginning_offsets(list(positions))
        except (KafkaError, OSError, TimeoutError) as error:
            self._log.warning("beginnings_unknown", error=type(error).__name__)
            if self._assigned.is_set():
                self.seek_all()  # the next poll asks again
            return
        for partition, position in positions.items():
            offsets = self._partitions.get(partition)
            if offsets is None or partition not in self.consumer.assignment():
                continue  # it went away while we asked
            if position < offsets.next_offset:  # told late: we have gone on since
                self.consumer.seek(partition, offsets.next_offset)
                continue
            self._tell_loss(partition, position, beginnings[partition])
            # With what the broker holds: that differs, so the new place is committed at once, and
            # no later assignment finds the old one and counts the same loss again.
            self._partitions.track(partition, beginnings[partition], offsets.committed)
            self.consumer.seek(partition, beginnings[partition])

    def _tell_loss(self, partition: TopicPartition, position: int, beginning: int) -> None:
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
        """Hold the poll loop and commit; work in hand goes on."""
        del revoked
        self._assigned.clear()
        if not self._retired:
            await self._commit()
        self.may_commit = False

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, assigned: Iterable[TopicPartition]
    ) -> None:
        """Go on where we were with retained partitions, and at the committed offset with others."""
        if self._retired:
            return
        try:
            async with asyncio.timeout(ADOPT_WITHIN_S):
                await self._adopt(set(assigned))
        except Exception as error:  # noqa: BLE001  aiokafka would swallow it and fetch blindly
            self._failure = f"an assignment could not be taken over: {where(error)}"

    async def _adopt(self, assigned: set[TopicPartition]) -> None:
        committed = await self._committed(assigned)
        fresh = [partition for partition in assigned if committed[partition] is None]
        beginnings = await self.consumer.beginning_offsets(fresh) if fresh else {}
        if self._retired:
            return
        self._partitions.keep_only(assigned)
        for partition in assigned:
            held = committed[partition]
            offsets = self._partitions.get(partition)
            if offsets is None or not offsets.continues(held):  # new, or others made progress
                base = beginnings[partition] if held is None else held
                offsets = self._partitions.track(partition, base, held)
            offsets.committed = held
            self.consumer.seek(partition, offsets.next_offset)
        # From the first seek to here nothing was awaited: no fetch can have come between.
        self.may_commit = True
        self._assigned.set()
        self._log.info("assigned", partitions=len(assigned), generation=self._partitions.generation)

    async def _committed(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int | None]:
        ordered = list(partitions)
        offsets = await asyncio.gather(*map(self.consumer.committed, ordered))
        return dict(zip(ordered, offsets, strict=True))
