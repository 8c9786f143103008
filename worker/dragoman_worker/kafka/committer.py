"""Commits of finished offsets: every half second, with a timeout, never past unfinished work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from dragoman_worker.kafka.connection import forbidden
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.kafka.offsets import PartitionOffsets
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger, where
from dragoman_worker.metrics import Metrics

COMMIT_EVERY_S: Final = 0.5
COMMIT_TIMEOUT_S: Final = 10.0
LAST_COMMIT_S: Final = 5.0
"""Timeout of the last commit, at shutdown, where the time is short."""
_Due = dict[TopicPartition, tuple[PartitionOffsets, int]]


class Committer:
    """Commits the finished offsets through the current group membership."""

    def __init__(
        self, partitions: Partitions, membership: Callable[[], Membership | None], metrics: Metrics
    ) -> None:
        self._partitions = partitions
        self._membership = membership
        self._metrics = metrics
        self._log = logger()
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._committed_at = time.monotonic()
        self.acknowledged = 0
        """Number of commits that the broker has acknowledged: a sign of life."""
        self.broker_unavailable = False
        """Whether the last commit failed because no broker was available, which passes."""
        self.refused: Exception | None = None
        """The broker's denial of all commits, which waiting does not change; None if none."""

    def start(self) -> None:
        """Start to commit periodically."""
        self._task = asyncio.create_task(self._commit_forever(), name="committer")

    async def stop(self) -> None:
        """Stop, and commit the finished offsets a last time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        membership = self._membership()
        if membership is not None and not membership.broken and self._has_uncommitted():
            # If another worker drained at the same time, its leaving starts a rebalance. Until that
            # is over no commit is possible, and the finished jobs would be delivered again.
            await membership.assigned_within(LAST_COMMIT_S)
        await self.commit(LAST_COMMIT_S)

    async def commit(self, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """Commit every commit offset that has moved. Never raises: a failed commit is due again."""
        async with self._lock:
            membership, due = self._membership(), self.due()
            if membership is None or not due:
                if not self._has_uncommitted():
                    self._committed_at = time.monotonic()
                return
            for offsets, mark in due.values():
                offsets.tried = mark
            outcome = await self._try_commit(
                membership, {tp: mark for tp, (_, mark) in due.items()}, timeout_s
            )
            self._metrics.commits.labels(outcome).inc()
            if outcome == "ok":
                self.acknowledged += 1
                self._committed_at = time.monotonic()
                for offsets, mark in due.values():
                    offsets.committed = mark

    async def _try_commit(
        self, membership: Membership, commit_offsets: dict[TopicPartition, int], timeout_s: float
    ) -> str:
        self.broker_unavailable = False
        try:
            async with asyncio.timeout(timeout_s):  # aiokafka retries for ever
                await membership.consumer.commit(commit_offsets)
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

    @property
    def stopped(self) -> bool:
        """Whether the task that commits has stopped, even without a call of `stop`."""
        return self._task is not None and self._task.done()

    def due(self) -> _Due:
        """Return the commit offsets that the broker has not acknowledged, by partition."""
        membership = self._membership()
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

    async def _commit_forever(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            try:
                await self.commit()
            except Exception as error:  # noqa: BLE001  a dead committer would stop all progress
                self._metrics.commits.labels("failed").inc()
                self._log.error("commit_broke", where=where(error))
