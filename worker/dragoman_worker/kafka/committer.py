"""Commits of finished offsets: with a timeout, and never past unfinished work.

A topic that was deleted and created anew while this process was paused or cut off looks like the
old one: the consumer would continue at the old position and skip all records before it. But Kafka
deletes the committed offsets together with the topic. While the group has members, nobody else can
lower them and, since Kafka 2.1, they don't expire. So they are read before each commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from dragoman_worker.kafka.connection import forbidden
from dragoman_worker.kafka.membership import Membership, committed_offsets
from dragoman_worker.kafka.offsets import PartitionOffsets
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics

COMMIT_TIMEOUT_S: Final = 10.0
CHECK_EVERY_S: Final = 10.0
"""Seconds between two looks for topics created anew while nothing is due.

A new topic may have exactly as many records as the old one: then no fetch fails.
"""
LAST_COMMIT_S: Final = 5.0
"""Timeout of the last commit, at shutdown, where the time is short."""
_Due = dict[TopicPartition, tuple[PartitionOffsets, int]]


class Committer:
    """Commits the finished offsets of all partitions, through whichever membership is current."""

    def __init__(self, partitions: Partitions, metrics: Metrics) -> None:
        self._partitions = partitions
        self._metrics = metrics
        self._log = logger()
        self._lock = asyncio.Lock()
        self._committed_at = self._checked_at = time.monotonic()
        self.acknowledged = 0
        """Number of commits that the broker has acknowledged: a sign of life."""
        self.broker_unavailable = False
        """Whether the last commit failed because no broker was available, which passes."""
        self.refused: Exception | None = None
        """The broker's denial of all commits, which waiting does not change; None if none."""

    async def commit_and_check(self, membership: Membership | None) -> None:
        """Commit, and every ten seconds look for topics created anew. Never raises."""
        try:
            await self.commit(membership)
            if time.monotonic() - self._checked_at > CHECK_EVERY_S:
                await self.check(membership)
        except Exception as error:  # noqa: BLE001  a dead committer would stop all progress
            self._metrics.commits.labels("failed").inc()
            self._log.error("commit_broke", where=where(error))

    async def commit_last(self, membership: Membership | None) -> None:
        """Commit before the group is left; never raises."""
        if membership is not None and not membership.broken and self._has_uncommitted():
            # If another worker drained at the same time, its leaving starts a rebalance. Until that
            # is over no commit is possible, and the finished jobs would be delivered again.
            await membership.assigned_within(LAST_COMMIT_S)
        await self.commit(membership, LAST_COMMIT_S)

    async def commit(
        self, membership: Membership | None, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> None:
        """Commit every commit offset that has moved. Never raises: a failed commit is due again."""
        async with self._lock:
            due = self.due(membership)
            if membership is None or not due:
                if not self._has_uncommitted():
                    self._committed_at = time.monotonic()
                return
            outcome = await self._try_commit(membership, due, timeout_s)
            self._metrics.commits.labels(outcome).inc()
            if outcome == "ok":
                self.acknowledged += 1
                self._committed_at = time.monotonic()

    async def _try_commit(self, membership: Membership, due: _Due, timeout_s: float) -> str:
        self.broker_unavailable = False
        try:
            async with asyncio.timeout(timeout_s):  # aiokafka retries for ever
                await self._commit_unless_recreated(membership, due)
        except (CommitFailedError, IllegalStateError):
            return "rebalanced"
        except Exception as error:  # noqa: BLE001  uvloop: RuntimeError of a broken connection
            self.broker_unavailable = isinstance(error, OSError) or getattr(
                error, "retriable", False
            )
            if forbidden(error):
                self.refused = error
            self._log.warning("commit_failed", error=type(error).__name__, where=where(error))
            return "failed"
        return "ok"

    async def _commit_unless_recreated(self, membership: Membership, due: _Due) -> None:
        recreated = await self._recreated(membership, {each: due[each][0] for each in due})
        marks = {each: due[each] for each in due if each not in recreated}
        for offsets, mark in marks.values():
            offsets.tried = mark
        if marks:
            await membership.consumer.commit({each: mark for each, (_, mark) in marks.items()})
        for offsets, mark in marks.values():
            offsets.acknowledge(mark)
        if recreated:
            await self._restart(membership, recreated)

    # --- topics created anew ----------------------------------------------------------------------

    async def check(self, membership: Membership | None) -> None:
        """Restart the partitions whose topic was created anew. Never raises: it is tried again."""
        async with self._lock:
            if membership is None or not membership.may_commit:
                return
            assigned = membership.consumer.assignment()
            tracked = {each: held for each, held in self._partitions.items() if each in assigned}
            try:
                async with asyncio.timeout(COMMIT_TIMEOUT_S):
                    if recreated := await self._recreated(membership, tracked):
                        await self._restart(membership, recreated)
            except Exception as error:  # noqa: BLE001  as in a commit, which reports it
                self._log.debug("check_failed", error=type(error).__name__)

    async def _recreated(
        self, membership: Membership, tracked: Mapping[TopicPartition, PartitionOffsets]
    ) -> list[TopicPartition]:
        """Return the partitions whose committed offset is gone or lower than the broker's last."""
        self._checked_at = time.monotonic()
        known = {
            each: offsets for each, offsets in tracked.items() if offsets.acknowledged is not None
        }
        if not known:
            return []
        held = await committed_offsets(membership.consumer, known)
        return [each for each, offsets in known.items() if offsets.is_ahead_of(held.get(each))]

    async def _restart(self, membership: Membership, partitions: Iterable[TopicPartition]) -> None:
        """Read partitions from the beginning, in a new generation: the topic was created anew.

        The beginnings are committed first. Kafka accepts that only from a member of the present
        generation, so what another member or an operator has committed since this one was expelled
        is not mistaken for a new topic. Raises what a commit raises.
        """
        before = {partition: self._partitions.get(partition) for partition in partitions}
        beginnings = await membership.beginnings(before)
        await membership.consumer.commit(beginnings)
        for partition, beginning in beginnings.items():
            old = self._partitions.get(partition)
            if old is None or old is not before[partition]:
                continue  # revoked or restarted during the requests
            self._report_recreation(partition, old, beginning)
            self._partitions.track(partition, beginning, beginning).acknowledge(beginning)
            membership.consumer.seek(partition, beginning)

    def _report_recreation(
        self, partition: TopicPartition, old: PartitionOffsets, beginning: int
    ) -> None:
        self._metrics.recreated_partitions.inc()
        self._log.error(
            "topic_recreated",
            topic=partition.topic,
            partition=partition.partition,
            acknowledged=old.acknowledged,
            beginning=beginning,
        )

    # --- state ------------------------------------------------------------------------------------

    def due(self, membership: Membership | None) -> _Due:
        """Return the commit offsets that the broker has not acknowledged, by partition."""
        if membership is None or not membership.may_commit:
            return {}
        assigned = membership.consumer.assignment()
        return {
            partition: (offsets, offsets.commit_offset)
            for partition, offsets in self._partitions.items()
            if partition in assigned and offsets.due
        }

    def age_s(self) -> float:
        """Return the seconds that finished work has been uncommitted; 0 while there is none."""
        return time.monotonic() - self._committed_at if self._has_uncommitted() else 0.0

    def _has_uncommitted(self) -> bool:
        return any(offsets.due for _, offsets in self._partitions.items())
