"""The broker of the tests is a real one and survives the faults of the chaos tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from support.services.kafka_broker import KafkaBroker


async def _publish(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, acks="all"
    ) as producer:
        for value in values:
            await producer.send_and_wait(topic, value)


async def _read(bootstrap: str, topic: str, count: int) -> Sequence[bytes | None]:
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-readers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        values = [(await consumer.getone()).value for _ in range(count)]
        await consumer.commit()
    return values


async def test_records_written_are_read_by_a_group(
    kafka: KafkaBroker, topic: Callable[..., str]
) -> None:
    name = topic(partitions=1)
    await _publish(kafka.bootstrap, name, [b"1", b"2", b"3"])
    assert await _read(kafka.bootstrap, name, 3) == [b"1", b"2", b"3"]


async def test_acknowledged_records_survive_a_killed_broker(own_kafka: KafkaBroker) -> None:
    own_kafka.create_topic("kept")
    await _publish(own_kafka.bootstrap, "kept", [b"before"])
    own_kafka.kill()
    own_kafka.restart()
    assert await _read(own_kafka.bootstrap, "kept", 1) == [b"before"]
