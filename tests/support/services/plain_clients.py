"""What does a program see that has never heard of us? Kafka by librdkafka, Redis by redis-py."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import redis
from confluent_kafka import Consumer, Producer, TopicPartition

from support.processes.waiting import wait_until

TERMINAL = {b"completed", b"failed", b"cancelled", b"expired"}


@dataclass(frozen=True, slots=True)
class DeadLetter:
    key: bytes | None
    value: bytes | None
    headers: dict[str, str]

    @property
    def code(self) -> str:
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
    """Every record of a topic up to its present end."""
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
        deadline = time.monotonic() + 20
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
    """Sum of the committed offsets and of the ends of all partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        offsets = [max(0, place.offset) for place in consumer.committed(places, timeout=10)]
        ends = [consumer.get_watermark_offsets(place, timeout=10)[1] for place in places]
        return sum(offsets), sum(ends)
    finally:
        consumer.close()


def job(client: redis.Redis, job_id: str) -> dict[str, Any]:
    """The fields of a job's key as a poller reads them; the result parsed."""
    raw: Any = client.hgetall(f"dragoman:job:{job_id}")
    fields: dict[str, Any] = {name.decode(): value.decode() for name, value in raw.items()}
    if "result" in fields:
        fields["result"] = json.loads(fields["result"])
    return fields


def ended(client: redis.Redis, job_id: str, timeout_s: float = 20.0) -> dict[str, Any]:
    """The fields of a job once it is terminal."""

    def terminal() -> bool:
        return client.hget(f"dragoman:job:{job_id}", "status") in TERMINAL

    wait_until(terminal, timeout_s=timeout_s, what=f"{job_id} is terminal")
    return job(client, job_id)
