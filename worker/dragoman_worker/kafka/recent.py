"""The most recent jobs of the topics, read without joining the group or committing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, Unreachable
from dragoman_worker.kafka.connection import connected, forbidden, not_allowed, quietly

_POLL_MS: Final = 500
_LEAST_PER_PARTITION: Final = 200


@dataclass(frozen=True, slots=True)
class Recent:
    """A record's bytes and its timestamp in ms since 1970."""

    value: bytes
    timestamp_ms: int


async def recent_records(settings: KafkaSettings, count: int, within: Deadline) -> list[Recent]:
    """Return about the last `count` records of the job topics, oldest first; fewer if fewer exist.

    The partitions are assigned, not subscribed: no worker loses a partition and no offset moves.
    Raises Unreachable, also if the records do not arrive in time, and Halt without the right.
    """
    partitions = await _partitions(settings, within)
    consumer = await connected(
        lambda: AIOKafkaConsumer(
            **client_options(settings),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ),
        settings,
        within,
    )
    try:
        found = await _read(consumer, await _spans(consumer, partitions, count), within)
    except (KafkaError, OSError) as error:
        raise _unreadable(settings, error) from None
    finally:
        await quietly(consumer.stop)
    return sorted(found, key=lambda record: record.timestamp_ms)[-count:]


async def _partitions(settings: KafkaSettings, within: Deadline) -> list[TopicPartition]:
    """Return every partition of the job topics. Raises Unreachable if a topic does not exist."""
    admin = await connected(
        lambda: AIOKafkaAdminClient(**client_options(settings)), settings, within
    )
    try:
        existing = set(await admin.list_topics())  # a request by name could create the topic
        for topic in settings.topic_names:
            if topic not in existing:
                raise Unreachable(f"kafka.topics: there is no topic {topic} to read jobs from")
        described = await admin.describe_topics(list(settings.topic_names))
    except (KafkaError, OSError) as error:
        raise _unreadable(settings, error) from None
    finally:
        await quietly(admin.close)
    return [
        TopicPartition(topic["topic"], partition["partition"])
        for topic in described
        for partition in topic["partitions"]
    ]


def _unreadable(settings: KafkaSettings, error: Exception) -> Halt:
    """Return the error to halt with if Kafka answers but the records cannot be read."""
    if forbidden(error):
        return not_allowed(error)
    topics = ", ".join(settings.topic_names)
    return Unreachable(
        f"kafka.topics: the last records of {topics} cannot be read from Kafka at "
        f"{settings.bootstrap_servers} ({error!r}); use a file of jobs with --jobs"
    )


async def _spans(
    consumer: Any, partitions: Sequence[TopicPartition], count: int
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first offset to read and the end offset of every partition that has records.

    From each partition twice its even share is read, and the newest of all are kept. Records may be
    large and partitions many, and a sample need not be complete.
    """
    count = min(count, max(_LEAST_PER_PARTITION, math.ceil(2 * count / max(1, len(partitions)))))
    beginnings = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    return {
        partition: (max(beginnings[partition], ends[partition] - count), ends[partition])
        for partition in partitions
        if ends[partition] > beginnings[partition]
    }


async def _read(
    consumer: Any, spans: Mapping[TopicPartition, tuple[int, int]], within: Deadline
) -> list[Recent]:
    consumer.assign(list(spans))
    for partition, (first, _) in spans.items():
        consumer.seek(partition, first)
    left = {partition: end for partition, (_, end) in spans.items()}
    found: list[Recent] = []
    try:
        async with asyncio.timeout(max(0.1, within.left_s)):
            while left:
                batches = await consumer.getmany(*left, timeout_ms=_POLL_MS)
                for partition, records in batches.items():
                    wanted = (r for r in records if r.offset < spans[partition][1] and r.value)
                    found += [Recent(r.value, r.timestamp) for r in wanted]
                # By position: the last offsets may hold no record (transactions, compaction).
                left = {p: end for p, end in left.items() if await consumer.position(p) < end}
    except TimeoutError:
        raise Unreachable(
            f"the job topics on Kafka were not read in time: {len(found)} records arrived; "
            "request fewer (--sample) or raise connect_timeout_s"
        ) from None
    return found
