"""Offset trackers of the assigned partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from aiokafka import TopicPartition

from dragoman_connections.kafka_batches.records import unmarked
from dragoman_worker.kafka.offsets import PartitionOffsets
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Delivery


class Partitions:
    """Offset trackers by partition. No I/O.

    They outlive a consumer: a partition that comes back at the same committed offset continues.
    """

    def __init__(self, metrics: Metrics, *, gapless: bool = False) -> None:
        """`gapless`: every offset is a record, so one that is missing was dropped."""
        self._metrics = metrics
        self.gapless = gapless
        self.dropped = 0
        """Records of a gapless broker that nobody has read and nobody can read any more."""
        self._offsets: dict[TopicPartition, PartitionOffsets] = {}
        self.generation = 0
        """Generation of the latest tracker; each new tracker increases it."""

    def track(
        self, partition: TopicPartition, base: int, committed: int | None
    ) -> PartitionOffsets:
        """Start a tracker at `base` in a new generation; earlier deliveries no longer count."""
        self.generation += 1
        offsets = PartitionOffsets(generation=self.generation, base=base, committed=committed)
        self._offsets[partition] = offsets
        if committed is None:  # nothing was read before
            self.jumped(0, base)
        return offsets

    def jumped(self, expected: int, found: int) -> None:
        """Count the records of a gapless broker between two offsets."""
        if self.gapless and found > expected:
            self.dropped += found - expected
            self._metrics.lost_to_retention.inc(found - expected)

    def keep_only(self, assigned: set[TopicPartition]) -> None:
        """Drop the trackers of all other partitions."""
        for partition in set(self._offsets) - assigned:
            del self._offsets[partition]

    def get(self, partition: TopicPartition) -> PartitionOffsets | None:
        """Return the tracker of a partition, None if it is not assigned."""
        return self._offsets.get(partition)

    def items(self) -> Iterator[tuple[TopicPartition, PartitionOffsets]]:
        """Return every assigned partition with its tracker."""
        return iter(self._offsets.items())

    def register(self, batches: Mapping[TopicPartition, Iterable[Any]]) -> list[Delivery]:
        """Register fetched records and return deliveries of those not delivered before."""
        if self.gapless:
            batches = lists = {place: list(records) for place, records in batches.items()}
            self._count_jumps(lists)
        return [
            _delivery(record, partition, offsets.generation)
            for partition, records in batches.items()
            if (offsets := self._offsets.get(partition)) is not None
            for record in records
            if offsets.begin(record.offset)
        ]

    def _count_jumps(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        for partition, records in batches.items():
            if (offsets := self._offsets.get(partition)) is not None:
                expected = offsets.next_offset
                for record in records:
                    self.jumped(expected, record.offset)
                    expected = max(expected, record.offset + 1)

    def pass_gaps(self, positions: Mapping[TopicPartition, int]) -> None:
        """Pass the gaps below the consumer's positions, whose fetched records are registered."""
        for partition, position in positions.items():
            if (offsets := self._offsets.get(partition)) is not None:
                offsets.pass_gap(position)

    def complete(self, delivery: Delivery) -> None:
        """Mark as finished; a delivery of an earlier generation is only counted."""
        offsets = self._offsets.get(TopicPartition(delivery.topic, delivery.partition))
        if offsets is None or offsets.generation != delivery.generation:
            self._metrics.stale_completions.inc()
            return
        offsets.complete(delivery.offset)

    def still_assigned(self, delivery: Delivery) -> bool:
        """Whether the delivery's partition is still assigned in the delivery's generation."""
        offsets = self._offsets.get(TopicPartition(delivery.topic, delivery.partition))
        return offsets is not None and offsets.generation == delivery.generation

    def unheld(self, held: Mapping[int, AbstractSet[int]]) -> str | None:
        """Return the origin of the first unfinished delivery that is not `held`, by generation."""
        for partition, offsets in self._offsets.items():
            offset = offsets.first_unfinished(without=held.get(offsets.generation, frozenset()))
            if offset is not None:
                return f"{partition.topic}/{partition.partition}/{offset}"
        return None


def _delivery(record: Any, partition: TopicPartition, generation: int) -> Delivery:
    headers, unreadable = unmarked(record.headers)
    return Delivery(
        topic=partition.topic,
        partition=partition.partition,
        offset=record.offset,
        generation=generation,
        key=record.key,
        value=record.value,
        headers=headers,
        timestamp_ms=record.timestamp,
        unreadable=unreadable,
    )
