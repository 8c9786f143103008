"""Integration tests of the last records of topics, read without a consumer group."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import AdminClient

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.recent import recent_records
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import publish

MakeTopic = Callable[..., str]


def settings(kafka: KafkaBroker, *topics: str) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=kafka.bootstrap, topics=topics, group_id=f"{topics[0]}-group"
    )


def jobs(first: int, count: int) -> list[dict[str, str]]:
    numbers = range(first, first + count)
    return [{"job_id": f"j{n}", "text": "Hello.", "target_lang": "de"} for n in numbers]


async def test_the_last_records_come_oldest_first_and_no_group_is_created(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    name = topic(partitions=1)
    publish(kafka.bootstrap, name, jobs(0, 1_000))
    found = await recent_records(settings(kafka, name), 300, Deadline.after(30))
    ids = [f'"j{n}"'.encode() for n in range(700, 1_000)]
    assert len(found) >= 300
    assert all(mark in record.value for mark, record in zip(ids, found[-300:], strict=True))
    assert [each.timestamp_ms for each in found] == sorted(each.timestamp_ms for each in found)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    groups = admin.list_consumer_groups().result(timeout=30).valid
    assert f"{name}-group" not in {group.group_id for group in groups}


async def test_all_topics_and_partitions_are_read_and_empty_ones_cause_no_delay(
    kafka: KafkaBroker, topic: MakeTopic
) -> None:
    one, other = topic(partitions=3), topic(partitions=2)
    publish(kafka.bootstrap, one, jobs(0, 40))
    assert await recent_records(settings(kafka, other), 10, Deadline.after(30)) == []
    publish(kafka.bootstrap, other, jobs(40, 40))
    found = await recent_records(settings(kafka, one, other), 1_000, Deadline.after(30))
    assert len(found) == 80
