"""How is the group's consumer built, is it still alive, and how is it put away?

The only file that looks into aiokafka's private parts: it has no public sign of health.
"""
# ruff: noqa: SLF001  see above

from __future__ import annotations

import time
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.client import ConnectionGroup
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from dragoman_connections.kafka_batches.responses import ReadableResponses
from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka.connection import quietly
from dragoman_worker.log import logger, where

FETCH_MAX_BYTES: Final = 16 * 1024 * 1024
FETCH_MAX_WAIT_MS: Final = 500
LANES_MAX_WAIT_MS: Final = 100
"""A broker is asked one thing at a time: while it waits for a record of a lane that has none,
nothing is fetched of the others."""
REBALANCE_TIMEOUT_MS: Final = 60_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
"""A rebalance is announced in the reply to a heartbeat, so this is how late a member learns of it:
that a sibling died, and that its partitions are to be assigned."""
METADATA_MAX_AGE_MS: Final = 30_000
"""How soon new partitions of a topic are noticed; aiokafka's default is five minutes."""
UNANSWERED_S: Final = 10.0
"""A fetch is answered within half a second, with records or without."""


def build_consumer(
    settings: KafkaSettings, *, client_id: str, listener: ConsumerRebalanceListener
) -> Any:
    """A consumer of the settings' topics, not started. It commits, resets and decodes nothing."""
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
        fetch_max_wait_ms=LANES_MAX_WAIT_MS if len(settings.topics) > 1 else FETCH_MAX_WAIT_MS,
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
    """Which of the consumer's background tasks have ended; nobody else would tell.

    Without the first nothing is fetched any more, without the second the group soon drops us.
    """
    tasks = {
        "fetch task": consumer._fetcher._fetch_task,
        "coordination task": consumer._coordinator._coordination_task,
    }
    return [name for name, task in tasks.items() if task.done()]


def member_id(consumer: Any) -> str:
    """The id by which the coordinator knows the consumer; empty before it has one."""
    coordinator = consumer._coordinator  # made by its start
    return "" if coordinator is None else str(coordinator.member_id)


def answers(consumer: Any) -> bool:
    """Whether any broker answers: it holds a connection open and owes no answer for long.

    The coordinator's connection is left out: to join is to wait for the others of the group.
    """
    latest = time.monotonic() - UNANSWERED_S
    return any(
        connection.connected() and (not connection._requests or connection._last_action > latest)
        for (_, group), connection in consumer._client._conns.items()
        if group == ConnectionGroup.DEFAULT
    )


def untold_error(consumer: Any) -> BaseException | None:
    """The error with which coordination has stopped until a `getmany` raises it.

    In a rebalance there is none under way, and without an assignment nobody would start one.
    """
    error: BaseException | None = consumer._coordinator._pending_exception
    return error


def undelivered(consumer: Any, partition: TopicPartition) -> int:
    """Offsets of an assigned partition that could be fetched now, as far as the broker has told.

    Counted to the last stable offset: what an open transaction holds back cannot be fetched. From
    the consumer's own position, which passes the gaps that transaction markers leave.
    """
    state = consumer._subscription.subscription.assignment.state_value(partition)
    end: int | None = consumer.last_stable_offset(partition)
    position: int | None = state.position if state.has_valid_position else None
    return 0 if end is None or position is None else max(0, end - position)


async def put_away(consumer: Any, timeout_s: float) -> None:
    """Leave the group and disconnect, whatever state the consumer is in."""
    await quietly(consumer.stop, timeout_s)
    await quietly(consumer._client.close, timeout_s)  # a stop that fails leaves connections open
