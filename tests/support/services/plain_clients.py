"""What a program without our packages does and sees: Kafka by librdkafka, Redis by redis-py."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import redis
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from support.processes.waiting import patient, wait_until

TERMINAL = {b"completed", b"failed", b"cancelled", b"expired"}


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record of a dead-letter topic, or of any other topic."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, str]

    @property
    def code(self) -> str:
        """The error code in its headers."""
        return self.headers["x-error-code"]


def publish(bootstrap: str, topic: str, values: Iterable[bytes | dict[str, Any] | None]) -> None:
    """Produce raw values (dicts as JSON) and wait for the broker's acknowledgements."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 10_000_000})
    failures: list[Any] = []
    for value in values:
        payload = json.dumps(value).encode() if isinstance(value, dict) else value
        key = value["job_id"] if isinstance(value, dict) and "job_id" in value else None
        _produce(producer, topic, payload, key, failures)
    assert producer.flush(30) == 0
    assert failures == []


def _produce(
    producer: Producer, topic: str, payload: bytes | None, key: str | None, failures: list[Any]
) -> None:
    def done(error: Any, _: Any) -> None:
        if error is not None:
            failures.append(error)

    while True:
        try:
            producer.produce(
                topic, payload, key=key if isinstance(key, str) else None, on_delivery=done
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def publish_with_headers(
    bootstrap: str, topic: str, value: dict[str, Any], headers: list[tuple[str, bytes]]
) -> None:
    """Produce one job with headers."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, json.dumps(value).encode(), headers=dict(headers))
    assert producer.flush(30) == 0


def read_all(bootstrap: str, topic: str, partitions: int = 1) -> list[DeadLetter]:
    """Return every record of a topic up to its present end."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    try:
        ends = {}
        for number in range(partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)
            ends[number] = (low, high)
        consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in ends.items()])
        wanted = sum(high - low for low, high in ends.values())
        found: list[DeadLetter] = []
        deadline = time.monotonic() + patient(20)
        while len(found) < wanted:
            assert time.monotonic() < deadline, f"{len(found)} of {wanted} records read"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                headers = _texts(message.headers())
                found.append(DeadLetter(message.key(), message.value(), headers))
        return found
    finally:
        consumer.close()


def _texts(headers: Any) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in headers or []}


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> tuple[int, int]:
    """Return the sums of the committed offsets and of the end offsets of all partitions."""
    found = offsets_of(bootstrap, group, topic, partitions)
    return sum(done for done, _ in found), sum(end for _, end in found)


def offsets_of(bootstrap: str, group: str, topic: str, partitions: int) -> list[tuple[int, int]]:
    """Return per partition the committed offset, 0 without one, and the end of the log.

    Raises KafkaException while the group has no coordinator. Tests poll this, so the connection
    stays open: a new consumer per call costs 20 ms of CPU time and more.
    """
    with _LOCK:
        consumer = _inspector(bootstrap, group)
    places = [TopicPartition(topic, number) for number in range(partitions)]
    return [
        (max(0, place.offset), _end_of(consumer, place))
        for place in consumer.committed(places, timeout=10)
    ]


def _end_of(consumer: Consumer, place: TopicPartition) -> int:
    """Return the end of the log, wherever its leader has moved since the last call."""

    def end() -> tuple[int] | None:
        try:
            return (consumer.get_watermark_offsets(place, timeout=10)[1],)
        except KafkaException as error:  # the client asks for the new leader after this
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            return None

    found = wait_until(end, timeout_s=30, what=f"the leader of {place.topic}")
    assert found is not None
    return found[0]


_LOCK: Final = threading.Lock()


@functools.lru_cache(maxsize=16)
def _inspector(bootstrap: str, group: str) -> Consumer:
    """Return a consumer that only looks at offsets and never joins the group."""
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})


def job(client: redis.Redis, job_id: str) -> dict[str, Any]:
    """Return the fields of a job's key as a polling client reads them, with the result parsed."""
    raw: Any = client.hgetall(f"dragoman:job:{job_id}")
    fields: dict[str, Any] = {name.decode(): value.decode() for name, value in raw.items()}
    if "result" in fields:
        fields["result"] = json.loads(fields["result"])
    return fields


def ended(client: redis.Redis, job_id: str, timeout_s: float = 20.0) -> dict[str, Any]:
    """Wait until a job is terminal and return its fields."""

    def terminal() -> bool:
        return client.hget(f"dragoman:job:{job_id}", "status") in TERMINAL

    wait_until(terminal, timeout_s=timeout_s, what=f"{job_id} is terminal")
    return job(client, job_id)
