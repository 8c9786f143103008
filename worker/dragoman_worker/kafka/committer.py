"""When is an offset committed? Twice a second at most, bounded, never past unfinished work."""

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
"""The same for the last one, when we leave: whoever stops us will not wait for long."""
_Due = dict[TopicPartition, tuple[PartitionOffsets, int]]


class Committer:
    """Commits what is finished, of whichever member is there."""

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
        """Commits that the broker has acknowledged: a sign of life."""
        self.broker_away = False
        """Whether the last commit failed for want of a broker, which is to be waited for."""
        self.refused: Exception | None = None
        """Why we may not commit at all: nothing that waiting could change."""

    def start(self) -> None:
        """Commit from now on."""
        self._task = asyncio.create_task(self._commit_forever(), name="committer")

    async def stop(self) -> None:
        """Commit a last time what is finished."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        membership = self._membership()
        if membership is not None and not membership.broken and self._owes():
            # A sibling that drained beside us has left: nothing may be committed until the group
            # has rebalanced, and what is finished would be delivered again.
            await membership.assigned_within(LAST_COMMIT_S)
        await self.commit(LAST_COMMIT_S)

    async def commit(self, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """Commit every watermark that has moved. Never raises: what failed is due again."""
        async with self._lock:
            membership, due = self._membership(), self.due()
            if membership is None or not due:
                if not self._owes():
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
        self, membership: Membership, marks: dict[TopicPartition, int], timeout_s: float
    ) -> str:
        self.broker_away = False
        try:
            async with asyncio.timeout(timeout_s):  # aiokafka retries without end
                await membership.consumer.commit(marks)
        except (CommitFailedError, IllegalStateError):
            return "rebalanced"
        except Exception as error:  # noqa: BLE001  uvloop: RuntimeError of a broken connection
            self.broker_away = isinstance(error, OSError) or getattr(error, "retriable", False)
            if forbidden(error):
                self.refused = error
            self._log.warning("commit_failed", error=type(error).__name__, where=where(error))
            return "failed"
        return "ok"

    @property
    def ended(self) -> bool:
        """Whether nobody commits any more, although nobody said so."""
        return self._task is not None and self._task.done()

    def due(self) -> _Due:
        """The watermarks that the broker has not acknowledged."""
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
        """Seconds that finished work has gone uncommitted; 0 while there is none."""
        return time.monotonic() - self._committed_at if self._owes() else 0.0

    def _owes(self) -> bool:
        return any(offsets.due for _, offsets in self._partitions.items())

    async def _commit_forever(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            try:
                await self.commit()
            except Exception as error:  # noqa: BLE001  without commits nothing would move for good
                self._metrics.commits.labels("failed").inc()
                self._log.error("commit_broke", where=where(error))
