"""Faults of three brokers and their repair: kills, stops, moves of leaders and coordinators."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest
from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from support.chaos.ledger import Letter
from support.services.kafka_broker import KafkaBroker

_ASK_S: Final = 3.0
_READ_S: Final = 60.0
LEADERS_MOVED_S: Final = 30.0


class Brokers(KafkaBroker):
    """A cluster for storms; every node is addressed by its number."""

    def __init__(self, *, nodes: int = 3) -> None:
        super().__init__(nodes=nodes)
        self.count = nodes

    def client(self) -> AdminClient:
        """Return an admin client that logs nothing while brokers are down.

        Keep it in a variable until its answer has come: what a dead client was asked is lost.
        """
        return AdminClient(
            {"bootstrap.servers": self.bootstrap, "log_level": 0, "socket.timeout.ms": 5000}
        )

    def terminate(self, node: int) -> None:
        """Stop a broker in an orderly way: its leaders move first."""
        process = self._nodes[node].process
        process.terminate()
        with suppress(AssertionError):
            process.wait(timeout_s=20)
        if process.running:
            process.kill()

    def bounce(self, node: int) -> None:
        """Stop a broker in an orderly way and start it."""
        self.terminate(node)
        self.restart(node)

    def mend(self) -> None:
        """Continue stopped brokers and start dead ones."""
        for node in self._nodes:
            node.process.resume()
            if not node.process.running:
                node.process.start()
        self._wait_until_serving()

    # --- inspection -----------------------------------------------------------------------------

    def coordinator(self, group: str) -> int | None:
        """Return the coordinator node of a group, None while it is unknown."""
        with suppress(KafkaException, TimeoutError):
            admin = self.client()
            asked = admin.describe_consumer_groups([group], request_timeout=_ASK_S)
            found: Any = asked[group].result(timeout=_ASK_S + 1)
            return None if found.coordinator is None else int(found.coordinator.id)
        return None

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition, as far as it is known."""
        try:
            known = self.client().list_topics(topic, timeout=_ASK_S).topics[topic].partitions
        except KafkaException:
            return {}
        return {number: partition.leader for number, partition in known.items()}

    def committed(self, group: str, topic: str, partitions: int) -> dict[int, int] | None:
        """Return the committed offset of each partition, None while it is unknown."""
        consumer = self._consumer(group)
        try:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            found = consumer.committed(places, timeout=_ASK_S)
            if any(place.error for place in found):
                return None
            return {place.partition: max(0, place.offset) for place in found}
        except KafkaException:
            return None
        finally:
            consumer.close()

    def ends(self, topic: str, partitions: int) -> dict[int, int]:
        """Return the end offset of each partition."""
        consumer = self._consumer("storm-looker")
        try:
            return {
                number: _end_of(consumer, TopicPartition(topic, number))
                for number in range(partitions)
            }
        finally:
            consumer.close()

    def letters(self, topic: str, partitions: int) -> list[Letter]:
        """Return every dead letter up to the present end."""
        ends = self.ends(topic, partitions)
        consumer = self._consumer("storm-letters")
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in ends])
            return list(_read_until(consumer, ends))
        finally:
            consumer.close()

    def _consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "log_level": 0,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )

    # --- moving ---------------------------------------------------------------------------------

    def move_leaders(self, topic: str, who: float) -> str:
        """Shuffle the preferred replicas of every partition and elect them; return what moved."""
        before = self.leaders(topic)
        order = random.Random(who)
        places = {number: order.sample(range(self.count), self.count) for number in sorted(before)}
        asyncio.run(self._reassign(topic, places))
        moved = 0
        deadline = time.monotonic() + LEADERS_MOVED_S
        while time.monotonic() < deadline:
            self._elect(topic, places)
            after = self.leaders(topic)
            moved = sum(after.get(number) != leader for number, leader in before.items())
            if all(after.get(number) == places[number][0] for number in places):
                break
            time.sleep(0.5)
        return f"{moved} of {len(before)} leaders moved"

    async def _reassign(self, topic: str, places: dict[int, list[int]]) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap, request_timeout_ms=5000)
        await admin.start()
        try:
            partitions: Any = [(number, nodes, {}) for number, nodes in places.items()]
            topics: Any = [(topic, partitions, {})]
            no_tags: Any = {}
            request = AlterPartitionReassignmentsRequest(5000, topics, no_tags)
            await admin._send_request(request)
        finally:
            await admin.close()

    def _elect(self, topic: str, places: Iterable[int]) -> None:
        partitions = [TopicPartition(topic, number) for number in places]
        with suppress(KafkaException, TimeoutError):
            admin = self.client()
            asked: Any = admin.elect_leaders(ElectionType.PREFERRED, partitions)
            asked.result(timeout=_ASK_S + 1)

    def delete(self, *topics: str) -> None:
        """Delete topics that no run needs any longer."""
        with suppress(KafkaException, TimeoutError):
            admin = self.client()
            for asked in admin.delete_topics(list(topics)).values():
                asked.result(timeout=10)


def _end_of(consumer: Consumer, place: TopicPartition) -> int:
    """Return the end offset; a leader that has moved since the client last asked is looked for."""
    deadline = time.monotonic() + _READ_S
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=_READ_S)[1])
        except KafkaException as error:
            moved = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
            if not moved or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _read_until(consumer: Consumer, ends: dict[int, int]) -> Iterable[Letter]:
    left = {number for number, end in ends.items() if end}
    deadline = time.monotonic() + _READ_S
    while left:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the dead letters of partitions {left} could not be read")
        message: Any = consumer.poll(0.5)
        if message is None or message.error() is not None:
            # The end of a partition; it is also reported where only transaction markers are left.
            if message is not None and message.error().code() == -191:
                left.discard(message.partition())
            continue
        headers = dict(message.headers() or [])
        spot = (int(headers["x-original-partition"]), int(headers["x-original-offset"]))
        yield Letter(spot, headers["x-error-code"].decode())
        if message.offset() + 1 >= ends[message.partition()]:
            left.discard(message.partition())
