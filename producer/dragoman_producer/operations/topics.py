"""Topics of Dragoman: create them, and read their offsets and lag."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.broker import connection_options, end_within, hidden, refused, unreachable
from dragoman_producer.errors import BrokerRefused

DEFAULT_PARTITIONS: Final = 12
DEAD_LETTER_RETENTION_S: Final = 30 * 86_400
BROKERS_DEFAULT: Final = -1
_MAX_MESSAGE_BYTES: Final = 1_048_588


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """Options of new topics; ``retention_s`` None is the TTL of an unfinished job's key."""

    partitions: int = DEFAULT_PARTITIONS
    replication: int = BROKERS_DEFAULT
    retention_s: int | None = None
    dead_letter_retention_s: int = DEAD_LETTER_RETENTION_S


@dataclass(frozen=True, slots=True)
class TopicMade:
    """One topic after ``create_topics``; an existing topic is not changed."""

    name: str
    created: bool
    partitions: int
    wanted: int

    @property
    def too_few(self) -> bool:
        """Whether there are fewer partitions than wanted, which bound the number of workers."""
        return self.partitions < self.wanted


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition: its first and next offset, and the group's committed offset."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    committed: int | None

    @property
    def lag(self) -> int:
        """Number of records not yet settled by the group; all records without a commit."""
        start = self.first_offset if self.committed is None else self.committed
        return max(0, self.next_offset - max(start, self.first_offset))


async def create_topics(settings: DragomanSettings, plan: TopicPlan) -> list[TopicMade]:
    """Create the topics of the settings and return each; existing ones are not changed.

    Raises BrokerUnreachable and BrokerRefused.
    """
    wanted = _new_topics(settings, plan)
    async with _admin(settings) as admin:
        existing = set(await admin.list_topics())
        missing = [topic for topic in wanted if topic.name not in existing]
        created = await _create(admin, missing, settings) if missing else {}
        names = _names(settings)
        found = {topic["topic"]: topic for topic in await admin.describe_topics(names)}
    return [
        _made(settings, topic, found[topic.name], created=created.get(topic.name, False))
        for topic in wanted
    ]


def _made(
    settings: DragomanSettings, topic: NewTopic, found: dict[str, Any], *, created: bool
) -> TopicMade:
    """Return the topic. Raises BrokerRefused if it existed and this user may not see it."""
    if not created and for_code(found["error_code"]) is TopicAuthorizationFailedError:
        raise BrokerRefused(
            f"Kafka at {settings.kafka.bootstrap_servers}: topic {topic.name} exists, but this "
            "user may not see it: grant DESCRIBE on the topic"
        )
    return TopicMade(
        name=topic.name,
        created=created,
        partitions=len(found["partitions"]) or topic.num_partitions,
        wanted=topic.num_partitions,
    )


async def show_topics(settings: DragomanSettings) -> list[PartitionState]:
    """Return every partition of the existing topics of the settings, with the group's lag.

    Raises BrokerUnreachable and BrokerRefused.
    """
    return await _partition_states(settings, _names(settings), group=True)


async def topic_states(settings: DragomanSettings, topic: str) -> list[PartitionState]:
    """Return every partition of one topic, without the group's committed offsets.

    Raises BrokerUnreachable, and BrokerRefused if the topic is missing or hidden.
    """
    found = await _partition_states(settings, [topic], group=False)
    if not found:
        raise hidden(settings.kafka, topic, "READ")
    return found


async def _partition_states(
    settings: DragomanSettings, topics: Sequence[str], *, group: bool
) -> list[PartitionState]:
    async with _admin(settings) as admin, _consumer(settings) as consumer:
        existing = set(await admin.list_topics())
        names = [name for name in topics if name in existing]
        described = await admin.describe_topics(names) if names else []
        partitions = [
            TopicPartition(topic["topic"], number)
            for topic in described
            for number in sorted(entry["partition"] for entry in topic["partitions"])
        ]
        committed = await _committed(admin, settings, partitions) if group else {}
        first = await consumer.beginning_offsets(partitions)
        following = await consumer.end_offsets(partitions)
    return [
        PartitionState(
            topic=place.topic,
            partition=place.partition,
            first_offset=first[place],
            next_offset=following[place],
            committed=_offset(committed.get(place)),
        )
        for place in sorted(partitions, key=lambda place: (names.index(place.topic), place))
    ]


def missing_topics(settings: DragomanSettings, found: Iterable[PartitionState]) -> list[str]:
    """Return the topics of the settings without any found partition."""
    known = {state.topic for state in found}
    return [name for name in _names(settings) if name not in known]


def _names(settings: DragomanSettings) -> list[str]:
    kafka = settings.kafka
    names = [*kafka.topic_names, kafka.dead_letter_topic]
    return [*names, kafka.results_topic] if kafka.results_topic else names


def _new_topics(settings: DragomanSettings, plan: TopicPlan) -> list[NewTopic]:
    retention_s = plan.retention_s or settings.redis.live_ttl_s

    def topic(name: str, seconds: int) -> NewTopic:
        # Not the broker's default: a compacted topic loses jobs, and refuses records without a key.
        configs = {"retention.ms": str(seconds * 1000), "cleanup.policy": "delete"}
        if name != settings.kafka.results_topic:
            configs["max.message.bytes"] = str(_MAX_MESSAGE_BYTES)
        new = NewTopic(name, plan.partitions, 1, topic_configs=configs)
        new.replication_factor = (
            plan.replication
        )  # the constructor does not accept -1, the broker's default
        return new

    return [
        topic(
            name,
            plan.dead_letter_retention_s
            if name == settings.kafka.dead_letter_topic
            else retention_s,
        )
        for name in _names(settings)
    ]


async def _create(
    admin: AIOKafkaAdminClient, topics: list[NewTopic], settings: DragomanSettings
) -> dict[str, bool]:
    """Create the topics; return for each whether it is new. Raises BrokerRefused."""
    cluster = await admin.describe_cluster()
    if cluster["controller_id"] not in {broker["node_id"] for broker in cluster["brokers"]}:
        names = ", ".join(topic.name for topic in topics)
        raise BrokerRefused(
            f"Kafka at {settings.kafka.bootstrap_servers} names no controller, so topic {names} "
            "cannot be created. An embedded broker has only the topics that it starts with. A "
            "cluster may be electing its controller: try again"
        )
    timeout_ms = int(settings.connect_timeout_s * 1000)
    response: Any = await admin.create_topics(topics, timeout_ms=timeout_ms)
    return {name: _outcome(settings, name, error) for name, *error in response.topic_errors}


def _outcome(settings: DragomanSettings, name: str, error: list[Any]) -> bool:
    """Return whether the topic is new. ``error`` is a code and, from newer brokers, a message."""
    kind = for_code(error[0])
    if error[0] == 0:
        return True
    if kind is TopicAlreadyExistsError:
        return False
    if kind in {TopicAuthorizationFailedError, ClusterAuthorizationFailedError}:
        raise BrokerRefused(
            f"Kafka at {settings.kafka.bootstrap_servers} does not let this user create topic "
            f"{name}: grant CREATE on the topic or the cluster"
        )
    why = error[1] if len(error) > 1 and error[1] else kind.__name__
    raise BrokerRefused(f"Kafka refused to create topic {name}: {why}")


async def _committed(
    admin: AIOKafkaAdminClient, settings: DragomanSettings, partitions: list[TopicPartition]
) -> dict[TopicPartition, Any]:
    """Return the group's committed offsets. A new broker creates its offsets topic on first use.

    The partitions are listed, because librdkafka's mock cluster does not return those of a group.
    """
    if not partitions:
        return {}
    async with asyncio.timeout(settings.connect_timeout_s):
        while True:
            try:
                found: dict[TopicPartition, Any] = await admin.list_consumer_group_offsets(
                    settings.kafka.group_id, partitions=partitions
                )
            except GroupCoordinatorNotAvailableError:
                await asyncio.sleep(0.1)
            else:
                return found


def _offset(found: Any) -> int | None:
    return found.offset if found is not None and found.offset >= 0 else None


@asynccontextmanager
async def _admin(settings: DragomanSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    timeout_ms = int(settings.connect_timeout_s * 1000)
    admin = AIOKafkaAdminClient(**connection_options(settings.kafka), request_timeout_ms=timeout_ms)
    async with _reached(settings, admin.start, admin.close):
        yield admin


@asynccontextmanager
async def _consumer(settings: DragomanSettings) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(**connection_options(settings.kafka), enable_auto_commit=False)
    async with _reached(settings, consumer.start, consumer.stop):
        yield consumer


@asynccontextmanager
async def _reached(settings: DragomanSettings, start: Any, stop: Any) -> AsyncIterator[None]:
    """Start a client, stop it in any case, and raise Kafka's errors as errors of this package."""
    timeout_s = settings.connect_timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            await start()
        yield
    except (KafkaError, OSError, TimeoutError) as error:
        if why := refused(settings.kafka, error, "DESCRIBE"):
            raise why from None
        raise await unreachable(settings.kafka, timeout_s, error) from None
    finally:
        await end_within(2.0, stop)
