"""Publisher of records that are acknowledged by all in-sync replicas or fail within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from aiokafka.partitioner import DefaultPartitioner

from dragoman_connections.kafka_producer import Headers, ReplaceableProducer
from dragoman_connections.settings import KafkaSettings
from dragoman_producer.broker import (
    connection_options,
    end_within,
    hidden,
    unreachable,
    wrong_broker,
)
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable, ClientClosed
from dragoman_producer.holding_back import HoldingBack

_ATTEMPTS: Final = 3
_MAX_REQUEST_BYTES: Final = 2_000_000
_STOP_S: Final = 5.0
_RECORD_ITSELF: Final = 100
"""Bytes of a stored record beside its key, value and headers."""

Bound = Callable[[], Awaitable[int | None]]
"""Returns the bytes that a publisher may have in a partition of a box; None without a box."""


class RecordTooLarge(Exception):
    """The record exceeds the broker's size limit."""


class Publisher:
    """Idempotent producer that connects at the first record and replaces itself when it breaks.

    Records may be published twice when a producer is replaced; a job's id makes that harmless.
    In a box, whose queue is in memory, it waits while its own records fill a partition's share.
    """

    def __init__(
        self, settings: KafkaSettings, *, connect_timeout_s: float, bound: Bound | None = None
    ) -> None:
        self._settings = settings
        self._bound = bound
        self._asked = False
        self._holding: HoldingBack | None = None
        self._admin: AIOKafkaAdminClient | None = None
        self._partitioner = DefaultPartitioner()
        self._timeout_s = connect_timeout_s
        self._producer = ReplaceableProducer(self._start, self._stop)
        self._checking = asyncio.Lock()
        self._topics: set[str] = set()
        self._closed = False

    async def publish(self, topic: str, key: bytes, value: bytes | None, headers: Headers) -> None:
        """Publish one record and wait for its acknowledgement.

        Raises RecordTooLarge, BrokerRefused if the topic is missing or forbidden, and
        BrokerUnreachable without an acknowledgement in connect_timeout_s: the record may still
        arrive then.
        """
        holding = await self._holding_back()
        if holding is None:
            await self._publish(topic, key, value, headers, None)
            return
        place = await self._place(topic, key)
        size = len(key) + len(value or b"") + _RECORD_ITSELF + _bytes_of(headers)
        async with holding.room(place, size) as acknowledged:
            acknowledged(await self._publish(topic, key, value, headers, place.partition))

    async def _publish(
        self, topic: str, key: bytes, value: bytes | None, headers: Headers, partition: int | None
    ) -> int:
        """Publish one record; return its offset."""
        attempt = 0
        while True:
            attempt += 1
            producer = await self._started(topic)
            try:
                async with asyncio.timeout(self._timeout_s):
                    sent = await producer.send_and_wait(
                        topic, value, key, partition=partition, headers=headers
                    )
            except MessageSizeTooLargeError:
                raise RecordTooLarge from None
            except TopicAuthorizationFailedError:
                raise self._forbidden(topic) from None
            except TimeoutError:
                raise await self._unacknowledged("no acknowledgement") from None
            except KafkaError as error:
                # The broker no longer knows this producer, its sequence is broken or its task died.
                await self._producer.retire(producer)
                if attempt == _ATTEMPTS:
                    raise await self._unacknowledged(error) from error
            else:
                return int(sent.offset)

    # --- in a box -------------------------------------------------------------------------------

    async def _holding_back(self) -> HoldingBack | None:
        if self._bound is not None and not self._asked:
            bound = await self._bound()
            if self._holding is None and bound is not None:
                self._holding = HoldingBack(bound, self._committed)
            self._asked = True
        return self._holding

    async def _place(self, topic: str, key: bytes) -> TopicPartition:
        producer = await self._started(topic)
        every = sorted(await producer.partitions_for(topic))
        return TopicPartition(topic, self._partitioner(key, every, every))

    async def _committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Return the group's committed offsets. Raises BrokerUnreachable."""
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._admin is None:
                    admin = AIOKafkaAdminClient(**connection_options(self._settings))
                    await admin.start()
                    self._admin = admin
                found: Mapping[TopicPartition, Any] = await self._admin.list_consumer_group_offsets(
                    self._settings.group_id, partitions=list(partitions)
                )
        except (KafkaError, OSError, TimeoutError) as error:
            raise await unreachable(self._settings, self._timeout_s, error) from None
        return {place: each.offset for place, each in found.items() if each.offset >= 0}

    async def close(self) -> None:
        """Flush what was sent within a bound, then close every connection and task."""
        self._closed = True
        await self._producer.close()
        if self._admin is not None:
            await end_within(_STOP_S, self._admin.close)

    async def _started(self, topic: str) -> AIOKafkaProducer:
        """Return a started producer, having checked the topic once. Raises ClientClosed."""
        if self._closed:
            raise ClientClosed("the client is closed")
        try:
            producer = await self._producer.started()
        except ClusterAuthorizationFailedError:
            # Of InitProducerId: the user may write to no topic at all.
            raise self._forbidden(topic) from None
        if topic not in self._topics:
            async with self._checking:
                if topic not in self._topics:
                    await self._check_topic(producer, topic)
                    self._topics.add(topic)
        return producer

    async def _start(self) -> AIOKafkaProducer:
        """Start a producer within connect_timeout_s.

        Raises BrokerUnreachable, and what no retry cures: WrongBroker and
        ClusterAuthorizationFailedError.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        pause_s = 0.1
        while True:
            producer = self._new_producer()
            try:
                async with asyncio.timeout_at(deadline):
                    await producer.start()
            except ClusterAuthorizationFailedError:
                await _stop(producer, 1.0)
                raise
            except (KafkaError, OSError, TimeoutError) as error:
                await _stop(producer, 1.0)
                if (wrong := await wrong_broker(self._settings)) is not None:
                    raise wrong from None
                if asyncio.get_running_loop().time() + pause_s >= deadline:
                    raise await unreachable(self._settings, self._timeout_s, error) from None
            except BaseException:
                await _stop(producer, 1.0)
                raise
            else:
                return producer
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 1.0)

    def _new_producer(self) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            **connection_options(self._settings),
            enable_idempotence=True,
            acks="all",
            max_request_size=_MAX_REQUEST_BYTES,
            request_timeout_ms=max(1000, int(self._timeout_s * 1000)),
        )

    async def _check_topic(self, producer: AIOKafkaProducer, topic: str) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await producer.partitions_for(topic)
        except TopicAuthorizationFailedError:
            raise hidden(self._settings, topic, "WRITE") from None
        except (UnknownTopicOrPartitionError, TimeoutError):
            raise BrokerRefused(
                f"Kafka at {self._settings.bootstrap_servers} has no topic {topic}: make it with "
                "`dragoman topics create`, or set kafka.topics"
            ) from None

    def _forbidden(self, topic: str) -> BrokerRefused:
        return BrokerRefused(
            f"Kafka at {self._settings.bootstrap_servers} does not let this user write to topic "
            f"{topic}: grant WRITE on the topic"
        )

    async def _unacknowledged(self, why: object) -> BrokerUnreachable:
        error = await unreachable(self._settings, self._timeout_s, why)
        return BrokerUnreachable(f"{error}; the job may have arrived, submitting it again is safe")

    async def _stop(self, producer: AIOKafkaProducer) -> None:
        await _stop(producer, min(_STOP_S, self._timeout_s))


def _bytes_of(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") + 10 for name, value in headers)


async def _stop(producer: AIOKafkaProducer, seconds: float) -> None:
    """Stop a producer, in at most `seconds` per step.

    An idempotent producer retries for ever, and its `stop` waits for that. If `stop` does not
    return in time, its sender, buffered records and connections are closed one by one: aiokafka
    has no public way to stop without a flush.
    """

    async def cancel_sender() -> None:
        await producer._sender.close()  # noqa: SLF001

    async def fail_records() -> None:
        producer._message_accumulator.fail_all(KafkaError("the producer was stopped"))  # noqa: SLF001

    await end_within(seconds, producer.stop, cancel_sender, fail_records, producer.client.close)
