"""Fetches from the aiokafka consumer: one at a time, priority class by priority class.

With several classes, only partitions of classes with capacity are polled. Records that aiokafka has
fetched for the others stay in its buffer (a paused partition would lose them), and delay the
fetches of the polled ones by up to a tenth of a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aiokafka import TopicPartition

from dragoman_worker.kafka.membership import Membership
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.ports import Capacity, Delivery

POLL_MS: Final = 250
SHORT_POLL_MS: Final = 50
"""Wait for records while a class has no capacity, which it may regain at any moment."""
MAX_POLL_RECORDS: Final = 500
_NO_PARTITION: Final = TopicPartition("", 0)
"""Polling this nonexistent partition returns nothing; `getmany()` without arguments would read all.

The poll keeps the group membership.
"""


class Fetching:
    """The running fetch, and the deliveries that are ready."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
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
