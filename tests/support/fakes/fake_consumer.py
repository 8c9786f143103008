"""A scripted stand-in for AIOKafkaConsumer, for rare behaviour of brokers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

TOPIC = "dragoman.jobs"


def partition(number: int | TopicPartition) -> TopicPartition:
    """Return a partition of the default topic, or the given one."""
    return number if isinstance(number, TopicPartition) else TopicPartition(TOPIC, number)


class FakeConsumer:
    """The part of AIOKafkaConsumer that KafkaConsumer uses: log, positions, commits, assignment."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.listener: Any = None
        self.topics: list[str] = []
        self.log: dict[TopicPartition, list[int]] = {}
        self.beginnings: dict[TopicPartition, int] = {}
        self.gap_ends: dict[TopicPartition, int] = {}
        self.stored: dict[TopicPartition, int] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.polls: deque[BaseException] = deque()
        self.commit_failures: deque[BaseException] = deque()
        self.commits: list[dict[TopicPartition, int]] = []
        self.seeks: list[tuple[TopicPartition, int]] = []
        self.stopped = False
        self.asked = 0
        self.untold_error: BaseException | None = None
        self.group: list[int] | None = None
        self._assigned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self.committed_reads = 0
        self.committed_failure: BaseException | None = None
        self.start_failure: BaseException | None = None
        self.commit_gate: asyncio.Event | None = None
        self.held_back: asyncio.Event | None = None
        self.fetch_ended = asyncio.get_running_loop().create_future()
        self.coordination_ended = asyncio.get_running_loop().create_future()
        self.beginnings_failures: deque[BaseException] = deque()

    # --- for tests --------------------------------------------------------------------------------

    def publish_assignment(self, numbers: Iterable[int | TopicPartition]) -> None:
        """Assign partitions as the fetcher sees it: before the callback has run."""
        self._assigned = {partition(number) for number in numbers}
        self._paused.clear()
        for tp in self._assigned:
            self.positions[tp] = self.stored.get(tp, self.beginnings.get(tp, 0))

    async def rebalance(self, numbers: Iterable[int | TopicPartition]) -> None:
        """Revoke everything and assign `numbers`, as an eager rebalance does."""
        await self.listener.on_partitions_revoked(set(self._assigned))
        self.publish_assignment(numbers)
        await self.listener.on_partitions_assigned(set(self._assigned))

    def fill(self, number: int | TopicPartition, count: int, start: int = 0) -> None:
        """Append records with consecutive offsets."""
        self.log.setdefault(partition(number), []).extend(range(start, start + count))

    def end_in_gap(self, number: int, end: int) -> None:
        """End the log with offsets that hold no record, such as a transaction's marker."""
        self.gap_ends[partition(number)] = end

    # --- what KafkaConsumer calls -----------------------------------------------------------------

    def subscribe(self, topics: list[str], listener: Any) -> None:
        self.topics, self.listener = topics, listener

    async def start(self) -> None:
        if self.start_failure is not None:
            raise self.start_failure
        if self.group is not None:
            await self.rebalance(self.group)

    async def stop(self) -> None:
        self.stopped = True

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._assigned)

    def paused(self) -> set[TopicPartition]:
        return set(self._paused)

    def pause(self, *partitions: TopicPartition) -> None:
        assert set(partitions) <= self._assigned
        self._paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        assert set(partitions) <= self._assigned
        self._paused -= set(partitions)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        assert tp in self._assigned
        self.seeks.append((tp, offset))
        self.positions[tp] = offset

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, Any]:
        self.asked += 1
        if self.held_back is not None:  # as during a rebalance
            await self.held_back.wait()
        drained: dict[TopicPartition, Any] = {}
        for tp in sorted(self._assigned - self._paused):
            if partitions and tp not in partitions:
                continue
            offsets = [offset for offset in self.log.get(tp, []) if offset >= self.positions[tp]]
            if batch := offsets[:max_records]:
                drained[tp] = [_record(offset) for offset in batch]
                self.positions[tp] = batch[-1] + 1
                max_records -= len(batch)
            if len(batch) == len(offsets):  # read to the end of the log
                self.positions[tp] = max(self.positions[tp], self.gap_ends.get(tp, 0))
            if max_records == 0:
                break
        if self.polls:  # as aiokafka does: positions have moved and the drained records are lost
            raise self.polls.popleft()
        return drained

    async def commit(self, marks: dict[TopicPartition, int]) -> None:
        if self.commit_failures:
            raise self.commit_failures.popleft()
        assert set(marks) <= self._assigned
        self.commits.append(dict(marks))
        self.stored |= marks
        if self.commit_gate is not None:  # committed, and the reply is still to come
            await self.commit_gate.wait()

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[Any, int]:
        if self.beginnings_failures:
            raise self.beginnings_failures.popleft()
        return {tp: self.beginnings.get(tp, 0) for tp in partitions}

    # --- private parts of aiokafka that the adapter reads -----------------------------------------

    @property
    def _fetcher(self) -> Any:
        return SimpleNamespace(_fetch_task=self.fetch_ended)

    @property
    def _coordinator(self) -> Any:
        return SimpleNamespace(
            _coordination_task=self.coordination_ended,
            _pending_exception=self.untold_error,
            fetch_committed_offsets=self._fetch_committed_offsets,
        )

    async def _fetch_committed_offsets(self, partitions: list[TopicPartition]) -> dict[Any, Any]:
        if self.committed_failure is not None:
            raise self.committed_failure
        self.committed_reads += 1
        stored = {each: self.stored[each] for each in partitions if each in self.stored}
        return {each: OffsetAndMetadata(offset, "") for each, offset in stored.items()}

    @property
    def _client(self) -> Any:
        return SimpleNamespace(close=self.stop, send=None)

    @property
    def _subscription(self) -> Any:
        def state_value(tp: TopicPartition) -> Any:
            return SimpleNamespace(has_valid_position=True, position=self.positions[tp])

        assignment = SimpleNamespace(state_value=state_value)
        return SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))

    def last_stable_offset(self, tp: TopicPartition) -> int | None:
        return self.highwater(tp)

    def highwater(self, tp: TopicPartition) -> int | None:
        offsets = self.log.get(tp)
        return max(offsets[-1] + 1, self.gap_ends.get(tp, 0)) if offsets else None


def _record(offset: int) -> Any:
    return SimpleNamespace(
        offset=offset,
        key=b"k",
        value=f"value {offset}".encode(),
        headers=(("traceparent", b"t"),),
        timestamp=1_000 + offset,
    )
