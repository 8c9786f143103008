"""The group's aiokafka consumer: construction, health checks and shutdown.

The only module that reads aiokafka's private attributes: it has no public health check.
"""
# ruff: noqa: SLF001  see above

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.client import ConnectionGroup
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from dragoman_connections.kafka_batches.repair import ReadableResponses
from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka.connection import quietly
from dragoman_worker.log import logger, where

FETCH_MAX_BYTES: Final = 16 * 1024 * 1024
FETCH_MAX_WAIT_MS: Final = 100
"""Longest wait of a fetch for the first record; aiokafka's default is 500.

A broker handles one fetch of this consumer at a time. While it waits for a record of a partition
that is empty, a partition that becomes readable (another class, a resumed or a new one) is not
fetched. The demonstration's embedded broker answers no fetch before its wait is over.
"""
REBALANCE_TIMEOUT_MS: Final = 60_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
"""Interval of heartbeats, whose replies announce a rebalance.

So this is also the delay with which a member learns that another died and that its partitions will
be assigned.
"""
METADATA_MAX_AGE_MS: Final = 30_000
"""Longest delay until new partitions of a topic are noticed; aiokafka's default is 5 minutes."""
UNANSWERED_S: Final = 10.0
"""Seconds without an answer after which a broker counts as silent.

A fetch is answered within its wait, with records or without.
"""


def build_consumer(
    settings: KafkaSettings, *, client_id: str, listener: ConsumerRebalanceListener
) -> Any:
    """Return a consumer of the settings' topics, not started.

    It commits no offset, resets no position and decodes no record by itself.
    """
    session_ms = int(settings.session_timeout_s * 1000)
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=settings.group_id,
        client_id=client_id,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        partition_assignment_strategy=(StickyPartitionAssignor,),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=max(300, min(HEARTBEAT_INTERVAL_MS, session_ms // 5)),
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        # JoinGroup blocks for the rebalance timeout: the request must outlast it
        request_timeout_ms=REBALANCE_TIMEOUT_MS + 10_000,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
        fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
        fetch_max_bytes=FETCH_MAX_BYTES,
        max_partition_fetch_bytes=FETCH_MAX_BYTES // 4,
    )
    client = consumer._client
    client.send = ReadableResponses(client.send, budget=FETCH_MAX_BYTES, on_defect=_report_defect)
    consumer.subscribe(list(settings.topic_names), listener=listener)
    return consumer


def _report_defect(offset: int, error: Exception) -> None:
    logger().error("batch_unreadable", offset=offset, where=where(error))


def dead_tasks(consumer: Any) -> list[str]:
    """Return the names of the consumer's background tasks that have stopped, which is not reported.

    Without the fetch task no record is fetched. Without the coordination task the group soon
    expels this member.
    """
    tasks = {
        "fetch task": consumer._fetcher._fetch_task,
        "coordination task": consumer._coordinator._coordination_task,
    }
    return [name for name, task in tasks.items() if task.done()]


def answers(consumer: Any) -> bool:
    """Whether any broker answers: its connection is open and no request is overdue.

    The coordinator's connection does not count: a JoinGroup request waits for the other members.
    """
    latest = time.monotonic() - UNANSWERED_S
    return any(
        connection.connected() and (not connection._requests or connection._last_action > latest)
        for (_, group), connection in consumer._client._conns.items()
        if group == ConnectionGroup.DEFAULT
    )


def pending_error(consumer: Any) -> BaseException | None:
    """Return the error that stopped the coordination and that the next `getmany` would raise.

    No `getmany` runs during a rebalance, and none is started without an assignment.
    """
    error: BaseException | None = consumer._coordinator._pending_exception
    return error


def next_position(consumer: Any, partition: TopicPartition) -> int | None:
    """Return the offset from which an assigned partition is read next; None before it has one.

    It is past the records that `getmany` has returned, and past the gaps behind them.
    """
    state = consumer._subscription.subscription.assignment.state_value(partition)
    return state.position if state.has_valid_position else None


async def committed_offsets(
    consumer: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets, from one request; partitions without one are missing.

    aiokafka's `committed` sends a request for each partition. Both wait for a coordinator for ever.
    """
    found = await consumer._coordinator.fetch_committed_offsets(list(partitions))
    return {partition: each.offset for partition, each in found.items()}


def undelivered(consumer: Any, partition: TopicPartition) -> int:
    """Return how many offsets of an assigned partition could be fetched now, as last reported.

    Counted up to the last stable offset, because records of an open transaction cannot be fetched.
    Counted from the consumer's position, which skips the gaps that transaction markers leave.
    """
    end: int | None = consumer.last_stable_offset(partition)
    position = next_position(consumer, partition)
    return 0 if end is None or position is None else max(0, end - position)


async def leave_and_close(consumer: Any, timeout_s: float) -> None:
    """Leave the group and disconnect, in any state of the consumer."""
    await quietly(consumer.stop, timeout_s)
    await quietly(consumer._client.close, timeout_s)  # a failed stop leaves connections open
