"""Which jobs came last? Read beside the group: no member joins, nothing is committed."""

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
_LEAST_A_PARTITION: Final = 200


@dataclass(frozen=True, slots=True)
class Recent:
    """A record's bytes and when it was appended, in ms since 1970."""

    value: bytes
    timestamp_ms: int


async def recent_records(settings: KafkaSettings, count: int, within: Deadline) -> list[Recent]:
    """About the last `count` records of the jobs' topics, oldest first; fewer if there are fewer.

    Assigned, not subscribed: without a group no worker loses a partition and no offset moves.
    Raises Unreachable, also if what is there does not arrive in time; Halt without the right to.
    """
    places = await _partitions(settings, within)
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
        found = await _read(consumer, await _spans(consumer, places, count), within)
    except (KafkaError, OSError) as error:
        raise _unreadable(settings, error) from None
    finally:
        await quietly(consumer.stop)
    return sorted(found, key=lambda record: record.timestamp_ms)[-count:]


async def _partitions(settings: KafkaSettings, within: Deadline) -> list[TopicPartition]:
    """Every partition of the jobs' topics. Raises Unreachable if one of them is not there."""
    admin = await connected(
        lambda: AIOKafkaAdminClient(**client_options(settings)), settings, within
    )
    try:
        existing = set(await admin.list_topics())  # asking for one by name could create it
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
    """What to end with if Kafka is there and does not tell what we ask."""
    if forbidden(error):
        return not_allowed(error)
    topics = ", ".join(settings.topic_names)
    return Unreachable(
        f"kafka.topics: the last records of {topics} cannot be read from Kafka at "
        f"{settings.bootstrap_servers} ({error!r}); give a file of jobs by --jobs"
    )


async def _spans(
    consumer: Any, places: Sequence[TopicPartition], count: int
) -> dict[TopicPartition, tuple[int, int]]:
    """Of every partition the first offset to read and the one to stop before.

    Of each twice its even share, and of the newest of those the last are kept: records may be large
    and partitions many, and a sample need not be complete.
    """
    count = min(count, max(_LEAST_A_PARTITION, math.ceil(2 * count / max(1, len(places)))))
    firsts = await consumer.beginning_offsets(places)
    ends = await consumer.end_offsets(places)
    return {
        place: (max(firsts[place], ends[place] - count), ends[place])
        for place in places
        if ends[place] > firsts[place]
    }


async def _read(
    consumer: Any, spans: Mapping[TopicPartition, tuple[int, int]], within: Deadline
) -> list[Recent]:
    consumer.assign(list(spans))
    for place, (first, _) in spans.items():
        consumer.seek(place, first)
    left = {place: end for place, (_, end) in spans.items()}
    found: list[Recent] = []
    try:
        async with asyncio.timeout(max(0.1, within.left_s)):
            while left:
                batches = await consumer.getmany(*left, timeout_ms=_POLL_MS)
                for place, records in batches.items():
                    wanted = (r for r in records if r.offset < spans[place][1] and r.value)
                    found += [Recent(r.value, r.timestamp) for r in wanted]
                # By position: the last offsets may hold no record (transactions, compaction).
                left = {p: end for p, end in left.items() if await consumer.position(p) < end}
    except TimeoutError:
        raise Unreachable(
            f"the jobs' topics on Kafka were not read in time: {len(found)} records arrived; "
            "ask for fewer (--sample) or raise connect_timeout_s"
        ) from None
    return found
