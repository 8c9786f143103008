"""Publishers of dead letters and results, acknowledged by all in-sync replicas."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    BrokerResponseError,
    InvalidProducerEpoch,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
    kafka_errors,
)
from aiokafka.partitioner import DefaultPartitioner

from dragoman_connections.kafka_client import client_options
from dragoman_connections.kafka_producer import (
    Headers,
    ReplaceableProducer,
    SenderDied,
    fail_records_with_sender,
)
from dragoman_connections.settings import KafkaSettings
from dragoman_schemas import names
from dragoman_schemas.results import TranslationResult
from dragoman_schemas.wire import encode_result, now_rfc3339
from dragoman_worker import tracing
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unavailable
from dragoman_worker.kafka.connection import connected, quietly
from dragoman_worker.ports import DeadLetter

LONGEST_HASHED: Final = 1024
"""aiokafka's murmur2 is Python: a key of 500 KB blocks the event loop for 130 ms."""
_MURMUR2: Final = DefaultPartitioner()
MAX_REQUEST_BYTES: Final = 1_040_000
"""Below a broker's default limit of 1,048,588 bytes. The size is checked before the broker does: a
batch that it refuses leaves a gap in an idempotent producer's sequence, so all later ones fail."""
_BROKEN: Final = (OutOfOrderSequenceNumber, InvalidProducerEpoch, UnknownProducerId, SenderDied)
MAX_MESSAGE_BYTES: Final = 1024
_NULL: Final[Any] = object()
"""A null value beside a null key, which aiokafka refuses as an argument."""


class Unsendable(Exception):
    """The record cannot be published in this form, whatever is retried."""


class TooLarge(Unsendable):
    """The broker refuses records of this size."""


class InvalidRecordError(BrokerResponseError):  # type: ignore[misc]
    """Kafka's INVALID_RECORD, as a compacted topic answers a record without a key."""

    errno = 87
    message = "INVALID_RECORD"


kafka_errors.setdefault(InvalidRecordError.errno, InvalidRecordError)  # aiokafka does not know it
_REFUSED: Final = (MessageSizeTooLargeError, kafka_errors[InvalidRecordError.errno])
"""The broker refuses the record, and with it those of its batch."""


class KafkaPublisher:
    """One idempotent producer for every record that the worker writes."""

    def __init__(self, settings: KafkaSettings, *, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._producer = ReplaceableProducer(self._replacement, _stop)

    async def start(self, within: Deadline) -> None:
        """Connect. Raises Unreachable."""
        self._producer.use(await connected(self._new_producer, self._settings, within))

    def _new_producer(self) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            **client_options(self._settings),
            client_id=self._client_id,
            acks="all",
            enable_idempotence=True,
            # aiokafka takes any callable; its annotation names its default's class.
            partitioner=partition_for,  # pyright: ignore[reportArgumentType]
            value_serializer=lambda value: None if value is _NULL else value,
            max_request_size=MAX_REQUEST_BYTES + MAX_MESSAGE_BYTES,
            request_timeout_ms=30_000,
        )

    async def send(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        """Return once all in-sync replicas have the record. Raises Unsendable or Unavailable."""
        if _size(key, value, headers) > MAX_REQUEST_BYTES:
            raise TooLarge
        if key is None and value is None:
            value = _NULL
        producer = await self._producer.started()
        try:
            await producer.send_and_wait(topic, key=key, value=value, headers=list(headers))
        except _REFUSED:
            await self._producer.retire(producer)
            await self._send_alone(topic, key=key, value=value, headers=headers)
        except (TypeError, ValueError) as error:  # aiokafka cannot encode it, and never will
            raise Unsendable(type(error).__name__) from error
        except (KafkaError, OSError) as error:
            if isinstance(error, _BROKEN):
                await self._producer.retire(producer)
            raise Unavailable(f"topic {topic}: {type(error).__name__}") from error

    async def _send_alone(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        """Send a record in a batch of its own: the broker refuses the good with the bad."""
        producer = self._new_producer()
        try:
            await producer.start()
            fail_records_with_sender(producer)
            await producer.send_and_wait(topic, key=key, value=value, headers=list(headers))
        except MessageSizeTooLargeError as error:
            raise TooLarge from error
        except _REFUSED as error:
            if key is None:
                raise Unsendable("without a key") from error
            raise Unavailable(f"topic {topic}: {type(error).__name__}") from error
        except (KafkaError, OSError) as error:
            raise Unavailable(f"topic {topic}: {type(error).__name__}") from error
        finally:
            await quietly(producer.stop)

    async def _replacement(self) -> AIOKafkaProducer:
        """Start a producer in place of a broken one. Raises Unavailable."""
        producer = self._new_producer()
        try:
            await producer.start()
        except (KafkaError, OSError) as error:
            await quietly(producer.stop)
            raise Unavailable(f"new Kafka producer: {type(error).__name__}") from error
        return producer

    async def close(self) -> None:
        """Flush the buffered records and disconnect."""
        await self._producer.close()


class KafkaDeadLetters:
    """Publisher of dead letters: the original bytes, with the error and origin in headers."""

    def __init__(
        self, publisher: KafkaPublisher, *, topic: str, group_id: str, worker_id: str
    ) -> None:
        self._publisher = publisher
        self._topic = topic
        self._group_id = group_id
        self._worker_id = worker_id
        self._needs_keys = False
        """Whether the topic was found to refuse records without a key: it is compacted."""

    async def publish(self, dead_letter: DeadLetter) -> None:
        """See the port. Publish only the headers of a record that is too large.

        A topic that refuses a record without a key gets the record's place as its key.
        """
        delivery = dead_letter.delivery
        added = {
            names.HEADER_ORIGINAL_TOPIC: delivery.topic,
            names.HEADER_ORIGINAL_PARTITION: str(delivery.partition),
            names.HEADER_ORIGINAL_OFFSET: str(delivery.offset),
            names.HEADER_ORIGINAL_TIMESTAMP: str(delivery.timestamp_ms),
            names.HEADER_CONSUMER_GROUP: self._group_id,
            names.HEADER_ERROR_CODE: dead_letter.code,
            names.HEADER_ERROR_MESSAGE: dead_letter.message,
            names.HEADER_ATTEMPTS: str(dead_letter.attempts),
            names.HEADER_DELIVERIES: str(dead_letter.deliveries),
            names.HEADER_FIRST_SEEN: dead_letter.first_seen or now_rfc3339(),
            names.HEADER_WORKER: self._worker_id,
        }
        if dead_letter.job_id is not None:
            added[names.HEADER_JOB_ID] = dead_letter.job_id
        if (trace := tracing.current()) is not None and _untraced(delivery.headers):
            added[names.HEADER_TRACEPARENT] = trace.traceparent
        value = delivery.value or b""
        stub = {
            **added,
            names.HEADER_ORIGINAL_SHA256: hashlib.sha256(value).hexdigest(),
            names.HEADER_ORIGINAL_SIZE: str(len(value)),
        }
        origin = delivery.origin.encode()
        key = origin if delivery.key is None and self._needs_keys else delivery.key
        whole = _merged(delivery.headers, added)
        stubbed, short = _merged(delivery.headers, stub), _merged((), stub)
        forms = [(key, delivery.value, whole), (key, None, stubbed), (None, None, short)]
        if key is None:
            forms += [(origin, delivery.value, whole), (origin, None, stubbed)]
        sent = await self._first_sendable(*forms, (origin, None, short))
        self._needs_keys = self._needs_keys or (key is None and sent > 2)

    async def _first_sendable(self, *forms: tuple[bytes | None, bytes | None, Headers]) -> int:
        """Publish the first form that can be sent, and return which: any part may be unsendable.

        The last form is at most 2 KB. A topic that refuses even that is misconfigured, which
        counts as an outage: a dead letter is never dropped.
        """
        for number, (key, value, headers) in enumerate(forms):
            with contextlib.suppress(Unsendable):
                await self._publisher.send(self._topic, key=key, value=value, headers=headers)
                return number
        raise Unavailable(
            f"topic {self._topic} refuses a dead letter of 2 KB: raise its max.message.bytes"
        )


class KafkaResults:
    """Publisher of terminal results."""

    def __init__(self, publisher: KafkaPublisher, *, topic: str) -> None:
        self._publisher = publisher
        self._topic = topic

    async def publish(self, result: TranslationResult) -> None:
        """See the port. Publish a result that is too large without its translations."""
        key = result.job_id.encode()
        short = result.model_copy(update={"translations": [], "truncated": True})
        least = short.model_copy(update={"metadata": None})
        traced = result.traceparent
        headers = () if traced is None else ((names.HEADER_TRACEPARENT, traced.encode()),)
        for form in (result, short, least):
            value = encode_result(form)
            with contextlib.suppress(Unsendable):
                await self._publisher.send(self._topic, key=key, value=value, headers=headers)
                return
        raise Unavailable(
            f"topic {self._topic} refuses a result of 2 KB: raise its max.message.bytes"
        )


async def _stop(producer: AIOKafkaProducer) -> None:
    await quietly(producer.stop)


def _untraced(headers: Headers) -> bool:
    """Return whether the record has no trace of its own, which a dead letter keeps as it is."""
    return all(name != names.HEADER_TRACEPARENT for name, _ in headers)


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    overhead = 100 + sum(len(name) + len(content or b"") + 10 for name, content in headers)
    return len(key or b"") + len(value or b"") + overhead


def _merged(original: Headers, added: dict[str, str]) -> list[tuple[str, bytes | None]]:
    """Return the original headers without those of an earlier dead letter, then the added ones."""
    merged = [(_encodable(name), value) for name, value in original if name not in added]
    merged += [(name, _at_most(value, MAX_MESSAGE_BYTES)) for name, value in added.items()]
    return merged


def _encodable(name: str) -> str:
    """Return the name with a question mark per lone surrogate, which UTF-8 cannot encode."""
    return name.encode(errors="replace").decode()


def _at_most(text: str, limit: int) -> bytes:
    return text.encode(errors="replace")[:limit].decode(errors="ignore").encode()


def partition_for(
    key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]
) -> int:
    """Return the partition of a key; a key longer than any job's is hashed with SHA-256 first."""
    if key is not None and len(key) > LONGEST_HASHED:
        key = hashlib.sha256(key).digest()
    partition: int = _MURMUR2(key, all_partitions, available)
    return partition
