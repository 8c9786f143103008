"""Reader of topics between offsets, without a consumer group and in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_batches.repair import ReadableResponses
from dragoman_connections.settings import DragomanSettings
from dragoman_producer.broker import connection_options, end_within, refused, unreachable
from dragoman_producer.operations.topics import PartitionState

Records = list[ConsumerRecord]

_RECORDS_PER_BATCH: Final = 2000
_POLL_MS: Final = 500
_STALLED_AFTER: Final = 3
_FETCH_MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """Records of one partition from ``first`` up to ``end``, which is excluded."""

    topic: str
    partition: int
    first: int
    end: int


def spans_of(states: Iterable[PartitionState], *topics: str) -> list[RecordSpan]:
    """Return all current records of the topics, as one span per partition."""
    return [
        RecordSpan(state.topic, state.partition, state.first_offset, state.next_offset)
        for state in states
        if state.topic in topics
    ]


def count_of(spans: Iterable[RecordSpan]) -> int:
    """Count the offsets in the spans: at least the number of records."""
    return sum(max(0, span.end - span.first) for span in spans)


class TopicReader:
    """Consumer without a group: its reads do not change the offsets of the workers."""

    def __init__(self, consumer: AIOKafkaConsumer, settings: DragomanSettings) -> None:
        self._consumer = consumer
        self._settings = settings

    async def since(self, spans: Iterable[RecordSpan], timestamp_ms: int) -> list[RecordSpan]:
        """Return the spans without the records before the first one of that time."""
        places = {TopicPartition(span.topic, span.partition): span for span in spans}
        if not places:
            return []
        found = await self._consumer.offsets_for_times(dict.fromkeys(places, timestamp_ms))
        return [
            RecordSpan(
                span.topic,
                span.partition,
                span.end if found.get(place) is None else max(span.first, found[place].offset),
                span.end,
            )
            for place, span in places.items()
        ]

    async def read(self, spans: Sequence[RecordSpan]) -> AsyncIterator[Records]:
        """Yield records in batches of one partition each, in offset order; skip deleted offsets.

        Raises BrokerUnreachable if no record arrives for three times connect_timeout_s.
        """
        firsts = {TopicPartition(s.topic, s.partition): s.first for s in spans if s.first < s.end}
        self._consumer.assign(list(firsts))
        for place, first in firsts.items():
            self._consumer.seek(place, first)
        left = await self._ends(spans)
        now = asyncio.get_running_loop().time
        patience_s = self._settings.connect_timeout_s * _STALLED_AFTER
        progressed_at = now()
        while left:
            batches = await self._consumer.getmany(
                timeout_ms=_POLL_MS, max_records=_RECORDS_PER_BATCH
            )
            for place, records in batches.items():
                if wanted := [record for record in records if record.offset < left.get(place, 0)]:
                    yield wanted
            if batches:
                progressed_at = now()  # after the yields: a slow caller is not a stalled broker
            elif now() - progressed_at > patience_s:
                raise await unreachable(self._settings.kafka, patience_s, "no records arrive")
            await self._drop_finished(left)

    async def _ends(self, spans: Sequence[RecordSpan]) -> dict[TopicPartition, int]:
        """Return the offsets to stop at; records of an open transaction are left out."""
        ends = {TopicPartition(s.topic, s.partition): s.end for s in spans if s.first < s.end}
        settled = await self._consumer.end_offsets(list(ends)) if ends else {}
        return {place: min(end, settled[place]) for place, end in ends.items()}

    async def _drop_finished(self, left: dict[TopicPartition, int]) -> None:
        """Drop partitions that are read, by position: the last offsets may hold no record.

        Transaction markers and compaction cause that.
        """
        for place, end in list(left.items()):
            if await self._consumer.position(place) >= end:
                del left[place]
                self._consumer.pause(place)


@asynccontextmanager
async def topic_reader(settings: DragomanSettings) -> AsyncIterator[TopicReader]:
    """Provide a connected reader. Raises BrokerUnreachable and BrokerRefused, also in the body."""
    options: dict[str, Any] = connection_options(settings.kafka)
    consumer = AIOKafkaConsumer(
        **options,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",  # as the workers read
        fetch_max_bytes=_FETCH_MAX_BYTES,
        max_partition_fetch_bytes=_FETCH_MAX_BYTES // 4,
    )
    client = consumer._client  # noqa: SLF001  the responses before aiokafka parses them
    client.send = ReadableResponses(client.send, budget=_FETCH_MAX_BYTES)
    timeout_s = settings.connect_timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            await consumer.start()
        yield TopicReader(consumer, settings)
    except (KafkaError, OSError, TimeoutError) as error:
        if why := refused(settings.kafka, error, "READ"):
            raise why from None
        raise await unreachable(settings.kafka, timeout_s, error) from None
    finally:
        await end_within(2.0, consumer.stop)
