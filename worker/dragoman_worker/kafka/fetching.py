"""Which records come out of the consumer next? One fetch at a time, lane by lane.

With lanes, only partitions of lanes with room are asked for. What aiokafka has fetched for the
others stays in its buffer meanwhile (a paused partition would lose it), and holds their fetches up
for a tenth of a second at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import TopicPartition

from dragoman_worker.kafka.membership import Membership
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.ports import Capacity, Delivery

POLL_MS: Final = 250
SHORT_POLL_MS: Final = 50
"""How long lanes with room are waited for while another has none: it may have some any moment."""
MAX_POLL_RECORDS: Final = 500
_NONE: Final = TopicPartition("", 0)
"""Of this nothing comes, while without any named getmany gives of all. Asking keeps us a member."""


class Fetching:
    """The fetch under way, and the deliveries that are ready."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._task: asyncio.Task[int] | None = None
        self._ready: deque[Delivery] = deque()

    @property
    def under_way(self) -> bool:
        """Whether a fetch has begun whose outcome nobody has seen."""
        return self._task is not None

    @property
    def ready(self) -> bool:
        """Whether there are deliveries to give out."""
        return bool(self._ready)

    def out(self, capacity: Capacity) -> list[Delivery]:
        """Give out what is ready."""
        return [self._ready.popleft() for _ in range(min(capacity.jobs, len(self._ready)))]

    def begin(self, membership: Membership, capacity: Capacity) -> None:
        """Fetch, in the background: getmany must not be cancelled."""
        by_class = capacity.priorities and capacity.jobs
        fetch = (
            self._priorities(membership, capacity)
            if by_class
            else self._any(membership, capacity.jobs)
        )
        self._task = asyncio.create_task(fetch, name="fetch")

    async def ended_within(self, seconds: float) -> asyncio.Task[int] | None:
        """The fetch, once it has ended; what it found is ready. In a rebalance that may take."""
        task = self._task
        if task is None:
            return None
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return None
        if self._task is task:
            self._task = None
        return task

    async def abandon(self) -> None:
        """End a fetch of a consumer that nobody will ask again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _any(self, membership: Membership, capacity: int) -> int:
        return self._begun(
            membership,
            await membership.consumer.getmany(
                timeout_ms=POLL_MS if capacity else 0,
                max_records=max(1, min(capacity, MAX_POLL_RECORDS)),
            ),
        )

    async def _priorities(self, membership: Membership, capacity: Capacity) -> int:
        """What is there of each lane; if nothing is, whatever comes first."""
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
        open_ones = {priority: most for priority, most in priorities.items() if most}
        partitions = membership.open_partitions(open_ones)
        records = min((capacity, *open_ones.values()))
        if not timeout_ms and not (partitions and open_ones and records):
            return 0
        return self._begun(
            membership,
            await membership.consumer.getmany(
                *(partitions or (_NONE,)), timeout_ms=timeout_ms, max_records=records
            ),
        )

    def _begun(self, membership: Membership, batches: Mapping[Any, Any]) -> int:
        # Registered in the same step as they come out, or not at all: records of an assignment
        # whose callback has not ended are fetched again, because that ends by seeking.
        deliveries = self._partitions.begun(batches) if membership.is_assigned else []
        self._ready.extend(deliveries)
        return len(deliveries)
