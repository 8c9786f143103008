"""Retries of records that cannot be fetched: a few times with growing pauses, then a halt.

getmany discards the records of all partitions when one of them fails. So every partition is sought
back to the next offset to deliver.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    UnsupportedCodecError,
)

from dragoman_worker.backoff import backoff, pause_s
from dragoman_worker.errors import Halt
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics

TRIES_BEFORE_HALT: Final = 5
BACKOFF: Final = backoff(0.4, 10.0)
FETCH_ERRORS: Final = (
    CorruptRecordException,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    UnsupportedCodecError,
)
"""Errors that getmany raises for a record or a position, not for an unavailable broker."""


class Resyncs:
    """Count of failed fetches in a row, and the pause before the next one."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._in_a_row = 0
        self._failed_at: dict[TopicPartition, int] = {}
        self._resume_at: float | None = None

    def failed(self, membership: Membership, error: KafkaError) -> None:
        """Schedule a retry: the broker's disk or the network may recover. Raises Halt."""
        if not membership.is_assigned:
            return  # between two assignments there is no position; the callback will seek
        self._metrics.resyncs.inc()
        if not self._in_a_row:
            self._failed_at = membership.next_offsets()
        self._in_a_row += 1
        again_in_s = pause_s(BACKOFF, self._in_a_row)
        logger().error(
            "resync",
            error=type(error).__name__,
            times=self._in_a_row,
            again_in_s=round(again_in_s, 1),
        )
        if self._in_a_row >= TRIES_BEFORE_HALT:
            raise Halt(
                f"a record cannot be fetched ({type(error).__name__}), and none is ever skipped; "
                "see docs/how-to/troubleshoot.md"
            ) from error
        self._resume_at = time.monotonic() + again_in_s

    def succeeded(self, membership: Membership) -> None:
        """Reset the count once all partitions have passed the position of the failure.

        An empty fetch, or one of other partitions, does not prove that the record can be fetched.
        """
        if self._in_a_row and membership.has_passed(self._failed_at):
            self._in_a_row = 0

    async def due_within(self, seconds: float) -> bool:
        """Wait for the end of a pause, up to `seconds`; return whether it is over."""
        left_s = 0.0 if self._resume_at is None else self._resume_at - time.monotonic()
        if left_s > 0:
            await asyncio.sleep(min(left_s, seconds))
        return left_s <= seconds

    def resume(self, membership: Membership) -> None:
        """Seek to the next offsets to deliver, after a pause."""
        if self._resume_at is not None:
            self._resume_at = None
            membership.seek_all()
