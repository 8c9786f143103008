"""A compacted topic of dead letters takes each of them, and is warned of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer
from structlog.testing import capture_logs

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.inspection import inspection
from dragoman_worker.kafka.publisher import KafkaDeadLetters, KafkaPublisher
from dragoman_worker.kafka.topic_watch import TopicWatch
from dragoman_worker.ports import DeadLetter, Delivery
from support.processes.waiting import eventually
from support.services.kafka_broker import KafkaBroker

TIMEOUT_S = 30.0
COMPACT = {"cleanup.policy": "compact"}


async def test_dead_letters_with_and_without_a_key_are_published_together(
    kafka: KafkaBroker, topic: Callable[..., str]
) -> None:
    dead = topic(configs=COMPACT)
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap)
    publisher = KafkaPublisher(settings, client_id="w")
    await publisher.start(Deadline.after(TIMEOUT_S))
    letters = KafkaDeadLetters(publisher, topic=dead, group_id="g", worker_id="w")
    keys = [None, b"k1", None, b"k2"]
    records = [Delivery("jobs", 0, number, 1, key, b"{}", (), 7) for number, key in enumerate(keys)]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            published = [
                letters.publish(DeadLetter(one, code="internal", message="why")) for one in records
            ]
            await asyncio.gather(*published, return_exceptions=True)  # a batch may be refused whole
            await asyncio.gather(
                *(
                    letters.publish(DeadLetter(one, code="internal", message="why"))
                    for one in records
                )
            )
    finally:
        await publisher.close()
    consumer = AIOKafkaConsumer(
        dead, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        found = {(await consumer.getone()).key for _ in range(len(keys))}
        while found != {b"jobs/0/0", b"k1", b"jobs/0/2", b"k2"}:
            found.add((await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).key)
    finally:
        await consumer.stop()


async def test_a_compacted_topic_of_jobs_or_dead_letters_is_warned_of(
    kafka: KafkaBroker, topic: Callable[..., str]
) -> None:
    jobs, dead, results = topic(), topic(configs=COMPACT), topic(configs=COMPACT)
    settings = KafkaSettings(
        bootstrap_servers=kafka.bootstrap,
        topics=(jobs,),
        dead_letter_topic=dead,
        results_topic=results,
    )
    async with inspection(settings, Deadline.after(TIMEOUT_S)) as broker:
        assert [await broker.compacted(name) for name in (jobs, dead)] == [False, True]
    with capture_logs() as lines:
        watching = asyncio.ensure_future(TopicWatch(settings).watch())
        await eventually(lambda: lines, timeout_s=TIMEOUT_S, what="a warning")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert [line["topic"] for line in lines] == [dead]
