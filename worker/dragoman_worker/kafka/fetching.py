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

from dragoman_worker.kafka.member import Member
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.ports import Delivery, Room

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

    def out(self, room: Room) -> list[Delivery]:
        """Give out what is ready."""
        return [self._ready.popleft() for _ in range(min(room.jobs, len(self._ready)))]

    def begin(self, member: Member, room: Room) -> None:
        """Fetch, in the background: getmany must not be cancelled."""
        by_lane = room.lanes and room.jobs
        fetch = self._lanes(member, room) if by_lane else self._any(member, room.jobs)
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

    async def _any(self, member: Member, room: int) -> int:
        return self._begun(
            member,
            await member.consumer.getmany(
                timeout_ms=POLL_MS if room else 0, max_records=max(1, min(room, MAX_POLL_RECORDS))
            ),
        )

    async def _lanes(self, member: Member, room: Room) -> int:
        """What is there of each lane; if nothing is, whatever comes first."""
        lanes = room.lanes or {}
        left, found = min(room.jobs, MAX_POLL_RECORDS), 0
        for lane, most in lanes.items():
            found += await self._of_lanes(member, {lane: most}, left - found, 0)
        if found:
            return found
        waits = POLL_MS if all(lanes.values()) else SHORT_POLL_MS
        return await self._of_lanes(member, lanes, left, waits)

    async def _of_lanes(
        self, member: Member, lanes: Mapping[str, int], room: int, timeout_ms: int
    ) -> int:
        open_ones = {lane: most for lane, most in lanes.items() if most}
        partitions = member.open_partitions(open_ones)
        records = min((room, *open_ones.values()))
        if not timeout_ms and not (partitions and open_ones and records):
            return 0
        return self._begun(
            member,
            await member.consumer.getmany(
                *(partitions or (_NONE,)), timeout_ms=timeout_ms, max_records=records
            ),
        )

    def _begun(self, member: Member, batches: Mapping[Any, Any]) -> int:
        # Registered in the same step as they come out, or not at all: records of an assignment
        # whose callback has not ended are fetched again, because that ends by seeking.
        deliveries = self._partitions.begun(batches) if member.is_assigned else []
        self._ready.extend(deliveries)
        return len(deliveries)
