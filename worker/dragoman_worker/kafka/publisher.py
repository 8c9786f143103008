"""How do we write to Kafka? Dead letters and results, acknowledged by all replicas."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
)

from dragoman_connections.settings import KafkaSettings
from dragoman_schemas import names
from dragoman_schemas.results import TranslationResult
from dragoman_schemas.wire import encode_result, now_rfc3339
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unavailable
from dragoman_worker.kafka.connection import client_options, connected, quietly
from dragoman_worker.kafka.partitioning import partition_for
from dragoman_worker.ports import Delivery

Headers = Sequence[tuple[str, bytes | None]]
MAX_REQUEST_BYTES: Final = 1_040_000
"""Below a broker's default limit of 1,048,588 bytes. We must judge before the broker does: a batch
it refuses leaves a gap in an idempotent producer's sequence, and all later ones are refused too."""
_SEQUENCE_LOST: Final = (OutOfOrderSequenceNumber, InvalidProducerEpoch, UnknownProducerId)
MAX_MESSAGE_BYTES: Final = 1024


class Unsendable(Exception):
    """No retry can publish this record in this form."""


class TooLarge(Unsendable):
    """The broker takes no record of this size."""


class _SenderDied(Exception):
    """The producer's background task has ended: nothing of it will ever be acknowledged."""


class KafkaPublisher:
    """One idempotent producer for everything the worker writes."""

    def __init__(self, settings: KafkaSettings, *, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._producer: Any = None
        self._renewing = asyncio.Lock()

    async def start(self, within: Deadline) -> None:
        """Connect. Raises Unreachable."""
        self._producer = await connected(self._new_producer, self._settings, within)

    def _new_producer(self) -> Any:
        return AIOKafkaProducer(
            **client_options(self._settings),
            client_id=self._client_id,
            acks="all",
            enable_idempotence=True,
            # aiokafka takes any callable; its annotation names its default's class.
            partitioner=partition_for,  # pyright: ignore[reportArgumentType]
            max_request_size=MAX_REQUEST_BYTES + MAX_MESSAGE_BYTES,
            request_timeout_ms=30_000,
        )

    async def send(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        """Return once acknowledged. Raises Unsendable or Unavailable."""
        if _size(key, value, headers) > MAX_REQUEST_BYTES:
            raise TooLarge
        if key is None and value is None:
            value = b""  # aiokafka sends no record that has neither
        producer = self._producer
        try:
            await _acknowledged(producer, topic, key=key, value=value, headers=headers)
        except _SenderDied as error:
            await self._renew(producer)
            raise Unavailable(f"topic {topic}: the producer had died") from error
        except MessageSizeTooLargeError:
            await self._renew(producer)
            await self._send_alone(topic, key=key, value=value, headers=headers)
        except (TypeError, ValueError) as error:  # aiokafka cannot encode it, and never will
            raise Unsendable(type(error).__name__) from error
        except (KafkaError, OSError) as error:
            if isinstance(error, _SEQUENCE_LOST):
                await self._renew(producer)
            raise Unavailable(f"topic {topic}: {type(error).__name__}") from error

    async def _send_alone(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        """Send a record in a batch of its own: the broker refuses the small with the large."""
        producer = self._new_producer()
        try:
            await producer.start()
            await producer.send_and_wait(topic, key=key, value=value, headers=list(headers))
        except MessageSizeTooLargeError as error:
            raise TooLarge from error
        except (KafkaError, OSError) as error:
            raise Unavailable(f"topic {topic}: {type(error).__name__}") from error
        finally:
            await quietly(producer.stop)

    async def _renew(self, broken: Any) -> None:
        """Replace a producer whose sequence the broker no longer accepts. The first caller does."""
        async with self._renewing:
            if self._producer is not broken:
                return
            fresh = self._new_producer()
            try:
                await fresh.start()
            except (KafkaError, OSError) as error:
                await quietly(fresh.stop)
                raise Unavailable(f"a new producer: {type(error).__name__}") from error
            self._producer = fresh
            await quietly(broken.stop)

    async def close(self) -> None:
        """Send what is buffered and disconnect."""
        if self._producer is not None:
            await quietly(self._producer.stop)


class KafkaDeadLetters:
    """The dead-letter topic: the original bytes, and why and where they failed."""

    def __init__(
        self, publisher: KafkaPublisher, *, topic: str, group_id: str, worker_id: str
    ) -> None:
        self._publisher = publisher
        self._topic = topic
        self._group_id = group_id
        self._worker_id = worker_id

    async def publish(
        self,
        delivery: Delivery,
        *,
        code: str,
        message: str,
        job_id: str | None,
        attempts: int,
        deliveries: int,
        first_seen: str | None,
    ) -> None:
        """See the port. A record too large to publish is replaced by its headers."""
        ours = {
            names.HEADER_ORIGINAL_TOPIC: delivery.topic,
            names.HEADER_ORIGINAL_PARTITION: str(delivery.partition),
            names.HEADER_ORIGINAL_OFFSET: str(delivery.offset),
            names.HEADER_ORIGINAL_TIMESTAMP: str(delivery.timestamp_ms),
            names.HEADER_CONSUMER_GROUP: self._group_id,
            names.HEADER_ERROR_CODE: code,
            names.HEADER_ERROR_MESSAGE: message,
            names.HEADER_ATTEMPTS: str(attempts),
            names.HEADER_DELIVERIES: str(deliveries),
            names.HEADER_FIRST_SEEN: first_seen or now_rfc3339(),
            names.HEADER_WORKER: self._worker_id,
        }
        if job_id is not None:
            ours[names.HEADER_JOB_ID] = job_id
        value = delivery.value or b""
        stub = {
            **ours,
            names.HEADER_ORIGINAL_SHA256: hashlib.sha256(value).hexdigest(),
            names.HEADER_ORIGINAL_SIZE: str(len(value)),
        }
        await self._first_sendable(
            (delivery.key, delivery.value, _merged(delivery.headers, ours)),
            (delivery.key, None, _merged(delivery.headers, stub)),
            (None, None, _merged((), stub)),
        )

    async def _first_sendable(self, *forms: tuple[bytes | None, bytes | None, Headers]) -> None:
        """Publish the first form that can be sent: value, headers or key may be too large or odd.

        The last form is a few hundred bytes of our own. A topic that refuses even that is set up
        wrongly, which is an outage to wait for: the letter is never dropped.
        """
        for key, value, headers in forms:
            with contextlib.suppress(Unsendable):
                await self._publisher.send(self._topic, key=key, value=value, headers=headers)
                return
        raise Unavailable(f"topic {self._topic}: takes no letter of 2 KB (max.message.bytes)")


class KafkaResults:
    """The topic of every terminal result."""

    def __init__(self, publisher: KafkaPublisher, *, topic: str) -> None:
        self._publisher = publisher
        self._topic = topic

    async def publish(self, result: TranslationResult) -> None:
        """See the port. A result too large goes without its translations."""
        key = result.job_id.encode()
        short = result.model_copy(update={"translations": [], "truncated": True})
        least = short.model_copy(update={"metadata": None})
        for form in (result, short, least):
            with contextlib.suppress(Unsendable):
                await self._publisher.send(self._topic, key=key, value=encode_result(form))
                return
        raise Unavailable(f"topic {self._topic}: takes no result of 2 KB (max.message.bytes)")


async def _acknowledged(
    producer: Any, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    """Return once the broker has acknowledged it. Raises _SenderDied and KafkaError.

    aiokafka's sender dies of any error that is not Kafka's, such as uvloop's RuntimeError for a
    connection that has just broken, and tells nobody: what is buffered then waits for ever.
    """
    sender = producer._sender.sender_task  # noqa: SLF001  the only sign of it
    if sender.done():
        raise _SenderDied
    sent = await producer.send(topic, key=key, value=value, headers=list(headers))
    await asyncio.wait({sent, sender}, return_when=asyncio.FIRST_COMPLETED)
    if not sent.done():
        raise _SenderDied
    await sent


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    overhead = 100 + sum(len(name) + len(content or b"") + 10 for name, content in headers)
    return len(key or b"") + len(value or b"") + overhead


def _merged(original: Headers, ours: dict[str, str]) -> list[tuple[str, bytes | None]]:
    """The original headers, less those of an earlier dead letter, and ours."""
    merged = [(_encodable(name), value) for name, value in original if name not in ours]
    merged += [(name, _at_most(value, MAX_MESSAGE_BYTES)) for name, value in ours.items()]
    return merged


def _encodable(name: str) -> str:
    """The name with a question mark for each lone surrogate, which UTF-8 does not have."""
    return name.encode(errors="replace").decode()


def _at_most(text: str, limit: int) -> bytes:
    return text.encode(errors="replace")[:limit].decode(errors="ignore").encode()
