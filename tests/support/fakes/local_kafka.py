"""The Kafka ports in memory; nothing survives the process."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_schemas import names
from dragoman_schemas.results import TranslationResult
from dragoman_worker.errors import Halt
from dragoman_worker.kafka.offsets import PartitionOffsets
from dragoman_worker.ports import Capacity, DeadLetter, Delivery

POLL_S: Final = 0.25
"""Seconds that an empty poll waits for new records."""
Headers = Sequence[tuple[str, bytes | None]]
_Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Record:
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class MemoryConsumer:
    """A log of topics and a consumer group of one member; finished offsets are committed at once.

    Methods that take a topic default to the first one.
    """

    def __init__(
        self,
        *,
        topics: Sequence[str] = (names.JOBS_TOPIC,),
        partitions: int = 1,
        poll_s: float = POLL_S,
    ) -> None:
        self._topic = topics[0]
        self._poll_s = poll_s
        self._generation = 0
        self._log: dict[_Partition, list[_Record]] = {
            (topic, number): [] for topic in topics for number in range(partitions)
        }
        self._committed = dict.fromkeys(self._log, 0)
        self._offsets: dict[_Partition, PartitionOffsets] = {}
        self._changed = asyncio.Event()
        self._failure: Halt | None = None
        self.stale_completions = 0
        for topic, number in self._log:
            self.assign(number, topic)

    # --- producer and broker ----------------------------------------------------------------------

    def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int = 0,
        topic: str | None = None,
        gap: int = 0,
    ) -> int:
        """Append a record after `gap` offsets without records, and return its offset."""
        log = self._log[topic or self._topic, partition]
        offset = (log[-1].offset + 1 if log else 0) + gap
        now_ms = time.time_ns() // 1_000_000
        log.append(_Record(offset, key, value, tuple(headers), now_ms))
        self._changed.set()
        return offset

    def committed(self, partition: int = 0, topic: str | None = None) -> int:
        """Return the committed offset, at which a restarted worker would continue."""
        return self._committed[topic or self._topic, partition]

    def end(self, partition: int = 0, topic: str | None = None) -> int:
        """Return the end offset: one past the last record."""
        log = self._log[topic or self._topic, partition]
        return log[-1].offset + 1 if log else 0

    def revoke(self, partition: int = 0, topic: str | None = None) -> None:
        """Revoke the partition, as if it were assigned to another member."""
        self._offsets.pop((topic or self._topic, partition), None)

    def assign(self, partition: int = 0, topic: str | None = None) -> None:
        """Assign the partition, from its committed offset and in a new generation, as a restart."""
        self._generation += 1
        place = (topic or self._topic, partition)
        base = self._committed[place]
        self._offsets[place] = PartitionOffsets(generation=self._generation, base=base)
        self._changed.set()

    def fail(self, reason: Halt) -> None:
        """Let every later poll raise `reason`."""
        self._failure = reason
        self._changed.set()

    # --- the port ---------------------------------------------------------------------------------

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """Return new deliveries; wait a moment if there are none."""
        if capacity.jobs == 0:
            await asyncio.sleep(0)
            self._raise_if_failed()
            return ()
        found = self._next(capacity)
        if not found and self._failure is None:
            self._changed.clear()
            try:
                async with asyncio.timeout(self._poll_s):
                    await self._changed.wait()
            except TimeoutError:
                return ()
            found = self._next(capacity)
        self._raise_if_failed()
        return found

    def complete(self, delivery: Delivery) -> None:
        """Mark as finished and commit; a delivery of an earlier generation is only counted."""
        offsets = self._offsets.get(place := (delivery.topic, delivery.partition))
        if offsets is None or offsets.generation != delivery.generation:
            self.stale_completions += 1
            return
        offsets.complete(delivery.offset)
        offsets.committed = self._committed[place] = offsets.commit_offset

    def still_assigned(self, delivery: Delivery) -> bool:
        """Whether the delivery's partition is still assigned in the delivery's generation."""
        offsets = self._offsets.get((delivery.topic, delivery.partition))
        return offsets is not None and offsets.generation == delivery.generation

    def _raise_if_failed(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _next(self, capacity: Capacity) -> list[Delivery]:
        found: list[Delivery] = []
        if self._failure is not None:
            return found
        left = dict(capacity.priorities) if capacity.priorities is not None else None
        for place, offsets in self._offsets.items():
            topic = place[0]
            for record in self._log[place][self._delivered(place, offsets) :]:
                if len(found) == capacity.jobs:
                    return found
                if left is not None and not left.get(topic):
                    break
                if offsets.begin(record.offset):
                    found.append(_delivery(place, offsets.generation, record))
                    if left is not None:
                        left[topic] -= 1
        return found

    def _delivered(self, place: _Partition, offsets: PartitionOffsets) -> int:
        return bisect_left(self._log[place], offsets.next_offset, key=lambda record: record.offset)


def _delivery(place: _Partition, generation: int, record: _Record) -> Delivery:
    topic, partition = place
    return Delivery(
        topic=topic,
        partition=partition,
        offset=record.offset,
        generation=generation,
        key=record.key,
        value=record.value,
        headers=record.headers,
        timestamp_ms=record.timestamp_ms,
    )


class MemoryDeadLetters:
    """The DeadLetters port: a list. Never unavailable."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    async def publish(self, dead_letter: DeadLetter) -> None:
        """See the port."""
        self.letters.append(dead_letter)


class MemoryResults:
    """The Results port: a list. Never unavailable."""

    def __init__(self) -> None:
        self.results: list[TranslationResult] = []

    async def publish(self, result: TranslationResult) -> None:
        """See the port."""
        self.results.append(result)
