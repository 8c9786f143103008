"""How does a record reach Kafka, acknowledged by all replicas, or fail within a bound?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from dragoman_connections.settings import KafkaSettings
from dragoman_producer.broker import connection_options, end_within, hidden, unreachable
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable, ClientClosed

Headers = Sequence[tuple[str, bytes | None]]

_ATTEMPTS: Final = 3
_MAX_REQUEST_BYTES: Final = 2_000_000
_STOP_S: Final = 5.0


class RecordTooLarge(Exception):
    """The broker's own limit is below the record's size."""


class Publisher:
    """An idempotent producer that connects at the first record and replaces itself when it breaks.

    Records may be published twice when a producer is replaced; a job's id makes that harmless.
    """

    def __init__(self, settings: KafkaSettings, *, connect_timeout_s: float) -> None:
        self._settings = settings
        self._timeout_s = connect_timeout_s
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._topics: set[str] = set()
        self._closed = False

    async def publish(self, topic: str, key: bytes, value: bytes | None, headers: Headers) -> None:
        """Publish one record and wait for its acknowledgement.

        Raises RecordTooLarge, BrokerRefused where the topic is missing or forbidden, and
        BrokerUnreachable without one in connect_timeout_s: the record may still arrive then.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            producer = await self._started(topic)
            try:
                await self._acknowledged(producer, topic, key, value, headers)
            except MessageSizeTooLargeError:
                raise RecordTooLarge from None
            except TopicAuthorizationFailedError:
                raise self._forbidden(topic) from None
            except TimeoutError:
                raise await self._unacknowledged("no acknowledgement") from None
            except KafkaError as error:
                # The broker no longer knows this producer, or its order of records is broken.
                await self._retire(producer)
                if attempt == _ATTEMPTS:
                    raise await self._unacknowledged(error) from error
            else:
                return

    async def _acknowledged(
        self,
        producer: AIOKafkaProducer,
        topic: str,
        key: bytes,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                acknowledged = await producer.send(topic, value, key, headers=headers)
                await acknowledged
        except TimeoutError:
            sender = producer._sender.sender_task  # noqa: SLF001  it may have died and told nobody
            if sender is not None and sender.done():
                await self._retire(producer)
            raise

    async def close(self) -> None:
        """Give what was sent a bounded chance to arrive, and end every connection and task."""
        self._closed = True
        if self._producer is not None:
            await self._retire(self._producer)

    async def _started(self, topic: str) -> AIOKafkaProducer:
        if self._producer is not None and topic in self._topics:
            return self._producer
        async with self._starting:
            if self._closed:
                raise ClientClosed("the client is closed")
            if self._producer is None:
                self._producer = await self._start(topic)
            if topic not in self._topics:
                await self._check_topic(self._producer, topic)
                self._topics.add(topic)
            return self._producer

    async def _start(self, topic: str) -> AIOKafkaProducer:
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        pause_s = 0.1
        while True:
            producer = self._new_producer()
            try:
                async with asyncio.timeout_at(deadline):
                    await producer.start()
            except ClusterAuthorizationFailedError:
                # Of InitProducerId: the user may write to no topic at all.
                await _stop(producer, 1.0)
                raise self._forbidden(topic) from None
            except (KafkaError, OSError, TimeoutError) as error:
                await _stop(producer, 1.0)
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

    async def _retire(self, producer: AIOKafkaProducer) -> None:
        if self._producer is producer:
            self._producer = None
            await _stop(producer, min(_STOP_S, self._timeout_s))


async def _stop(producer: AIOKafkaProducer, seconds: float) -> None:
    # An idempotent producer retries for ever, and its own stop waits for that: where it did not
    # end in time, its sender and what is left of its records have to be ended one by one. aiokafka
    # has no public way to stop without a flush.
    async def end_sender() -> None:
        await producer._sender.close()  # noqa: SLF001

    async def give_records_up() -> None:
        producer._message_accumulator.fail_all(KafkaError("the producer was stopped"))  # noqa: SLF001

    await end_within(seconds, producer.stop, end_sender, give_records_up, producer.client.close)
