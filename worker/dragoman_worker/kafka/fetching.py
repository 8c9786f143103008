"""Fetches from the aiokafka consumer, one at a time, and recovery from those that fail.

With several classes, only partitions of classes with capacity are polled. Records that aiokafka has
fetched for the others stay in its buffer (a paused partition would lose them), and delay the
fetches of the polled ones by up to a tenth of a second.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    UnsupportedCodecError,
)

from dragoman_worker.backoff import backoff, pause_s
from dragoman_worker.errors import Halt
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery

POLL_MS: Final = 250
SHORT_POLL_MS: Final = 50
"""Wait for records while a class has no capacity, which it may regain at any moment."""
MAX_POLL_RECORDS: Final = 500
TRIES_BEFORE_HALT: Final = 5
BACKOFF: Final = backoff(0.4, 10.0)
FETCH_ERRORS: Final = (
    CorruptRecordException,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    UnsupportedCodecError,
)
"""Errors that getmany raises for a record or a position, not for an unavailable broker."""
_NO_PARTITION: Final = TopicPartition("", 0)
"""Polling this nonexistent partition returns nothing; `getmany()` without arguments would read all.

The poll keeps the group membership.
"""


class Fetching:
    """The running fetch, and the deliveries that are ready."""

    def __init__(self, partitions: Partitions, metrics: Metrics) -> None:
        self._partitions = partitions
        self._metrics = metrics
        self._task: asyncio.Task[int] | None = None
        self._ready: deque[Delivery] = deque()

    @property
    def running(self) -> bool:
        """Whether a fetch has been started and its result not yet been collected."""
        return self._task is not None

    @property
    def ready(self) -> bool:
        """Whether fetched deliveries are ready."""
        return bool(self._ready)

    def held(self) -> Iterator[Delivery]:
        """Return the ready deliveries."""
        return iter(self._ready)

    def pop(self, capacity: Capacity) -> list[Delivery]:
        """Remove and return the ready deliveries, as many as the capacity allows."""
        return [self._ready.popleft() for _ in range(min(capacity.jobs, len(self._ready)))]

    def begin(self, membership: Membership, capacity: Capacity) -> None:
        """Start a fetch in the background: getmany must not be cancelled."""
        by_class = capacity.priorities and capacity.jobs
        fetch = (
            self._priorities(membership, capacity)
            if by_class
            else self._any(membership, capacity.jobs)
        )
        self._task = asyncio.create_task(fetch, name="fetch")

    async def finished_within(self, seconds: float) -> asyncio.Task[int] | None:
        """Return the fetch if it finishes in time, else None, as during a rebalance."""
        task = self._task
        if task is None:
            return None
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return None
        if self._task is task:
            self._task = None
        return task

    async def cancel(self) -> None:
        """Cancel the fetch of a consumer that is no longer used."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _any(self, membership: Membership, capacity: int) -> int:
        return self._register(
            membership,
            await membership.consumer.getmany(
                timeout_ms=POLL_MS if capacity else 0,
                max_records=max(1, min(capacity, MAX_POLL_RECORDS)),
            ),
        )

    async def _priorities(self, membership: Membership, capacity: Capacity) -> int:
        """Fetch the buffered records of each class, or if there are none, the first to arrive."""
        priorities = capacity.priorities or {}
        left, found = min(capacity.jobs, MAX_POLL_RECORDS), 0
        for priority, most in priorities.items():
            found += await self._of_classes(membership, {priority: most}, left - found, 0)
        if found:
            return found
        waits = POLL_MS if all(priorities.values()) else SHORT_POLL_MS
        return await self._of_classes(membership, priorities, left, waits)

    async def _of_classes(
        self, membership: Membership, priorities: Mapping[str, int], capacity: int, timeout_ms: int
    ) -> int:
        with_capacity = {priority: most for priority, most in priorities.items() if most}
        partitions = membership.open_partitions(with_capacity)
        records = min((capacity, *with_capacity.values()))
        if not timeout_ms and not (partitions and with_capacity and records):
            return 0
        return self._register(
            membership,
            await membership.consumer.getmany(
                *(partitions or (_NO_PARTITION,)), timeout_ms=timeout_ms, max_records=records
            ),
        )

    def _register(self, membership: Membership, batches: Mapping[Any, Any]) -> int:
        # Registered without an await in between, or not at all: records of an assignment whose
        # callback is still running are fetched again, because the callback seeks at the end.
        if not membership.is_assigned:
            return 0
        deliveries = self._partitions.register(batches)
        self._partitions.pass_gaps(membership.positions())
        self._ready.extend(deliveries)
        return len(deliveries)

    # --- a position that the log does not have ----------------------------------------------------

    async def out_of_range(
        self, membership: Membership, positions: Mapping[TopicPartition, int]
    ) -> None:
        """Go on at the beginning: Kafka deleted unread records, or the topic was recreated."""
        try:
            beginnings = await membership.beginnings(positions)
        except (KafkaError, OSError, TimeoutError) as error:
            logger().warning("beginnings_unknown", error=type(error).__name__)
            if membership.is_assigned:
                membership.seek_all()  # the next poll raises the error again
            return
        consumer = membership.consumer
        for partition, position in positions.items():
            offsets = self._partitions.get(partition)
            if offsets is None or partition not in consumer.assignment():
                continue  # revoked during the request
            if position < offsets.next_offset:  # late error: delivery has continued since
                consumer.seek(partition, offsets.next_offset)
                continue
            self._report_loss(partition, position, beginnings[partition])
            if beginnings[partition] < position:  # another topic of this name
                self._partitions.track(partition, beginnings[partition], offsets.committed)
            else:  # what was delivered before is in flight, and nobody could deliver it again
                offsets.pass_gap(beginnings[partition])
            # `committed` stays the broker's offset, which differs from the new commit offset: that
            # is committed once what was in flight is finished, and then no later assignment counts
            # the same loss again.
            consumer.seek(partition, beginnings[partition])

    def _report_loss(self, partition: TopicPartition, position: int, beginning: int) -> None:
        lost = max(0, beginning - position)
        if self._partitions.gapless:
            self._partitions.jumped(position, beginning)
        else:
            self._metrics.lost_to_retention.inc(lost)
        logger().critical(
            "lost_to_retention",
            topic=partition.topic,
            partition=partition.partition,
            wanted=position,
            beginning=beginning,
            lost=lost,
        )


class Resyncs:
    """Failed fetches in a row: a few retries with growing pauses, then a halt.

    getmany discards the records of all partitions when one of them fails. So every partition is
    sought back to the next offset to deliver.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._in_a_row = 0
        self._failed_at: dict[TopicPartition, int] = {}
        self._resume_at: float | None = None

    def failed(self, membership: Membership, error: KafkaError) -> None:
        """Schedule a retry: the broker's disk or the network may recover. Raises Halt."""
        if not membership.is_assigned:
            return  # between two assignments there is no position; the callback will seek
        self._metrics.resyncs.inc()
        if not self._in_a_row:
            self._failed_at = membership.next_offsets()
        self._in_a_row += 1
        again_in_s = pause_s(BACKOFF, self._in_a_row)
        logger().error(
            "resync",
            error=type(error).__name__,
            times=self._in_a_row,
            again_in_s=round(again_in_s, 1),
        )
        if self._in_a_row >= TRIES_BEFORE_HALT:
            raise Halt(
                f"a record cannot be fetched ({type(error).__name__}), and none is ever skipped; "
                "see docs/how-to/troubleshoot.md"
            ) from error
        self._resume_at = time.monotonic() + again_in_s

    def succeeded(self, membership: Membership) -> None:
        """Reset the count once all partitions have passed the position of the failure.

        An empty fetch, or one of other partitions, does not prove that the record can be fetched.
        """
        if self._in_a_row and membership.has_passed(self._failed_at):
            self._in_a_row = 0

    async def due_within(self, seconds: float) -> bool:
        """Wait for the end of a pause, up to `seconds`; return whether it is over."""
        left_s = 0.0 if self._resume_at is None else self._resume_at - time.monotonic()
        if left_s > 0:
            await asyncio.sleep(min(left_s, seconds))
        return left_s <= seconds

    def resume(self, membership: Membership) -> None:
        """Seek to the next offsets to deliver, after a pause."""
        if self._resume_at is not None:
            self._resume_at = None
            membership.seek_all()
