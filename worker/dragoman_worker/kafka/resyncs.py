"""What if a record cannot be fetched? Fetch again, a few times and later each time, then halt.

getmany throws away what it had drained of all partitions when one of them fails, so every partition
is sought back to where its delivery stopped.
"""

from __future__ import annotations

import asyncio
import random
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

from dragoman_worker.errors import Halt
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics

TRIES_BEFORE_HALT: Final = 5
FIRST_BACKOFF_S: Final = 0.2
LONGEST_BACKOFF_S: Final = 10.0
UNFETCHED: Final = (
    CorruptRecordException,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    UnsupportedCodecError,
)
"""What getmany raises for a record, or a place, and not for a broker that is away."""


class Resyncs:
    """How often in a row something could not be fetched, and when it is fetched again."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._in_a_row = 0
        self._failed_at: dict[TopicPartition, int] = {}
        self._again_at: float | None = None

    def failed(self, membership: Membership, error: KafkaError) -> None:
        """Fetch again after a pause, for a broker's disk or the way to it may mend. Raises Halt."""
        if not membership.is_assigned:
            return  # between two assignments nobody has a position; the callback will seek
        self._metrics.resyncs.inc()
        if not self._in_a_row:
            self._failed_at = membership.places()
        self._in_a_row += 1
        pause_s = backoff_s(self._in_a_row)
        logger().error(
            "resync",
            error=type(error).__name__,
            times=self._in_a_row,
            again_in_s=round(pause_s, 1),
        )
        if self._in_a_row >= TRIES_BEFORE_HALT:
            raise Halt(
                f"a record cannot be fetched ({type(error).__name__}) and none is ever skipped; "
                "see docs/how-to/troubleshoot.md"
            ) from error
        self._again_at = time.monotonic() + pause_s

    def forgive(self, membership: Membership) -> None:
        """After a fetch that went well: an empty one, or others' records, say nothing yet."""
        if self._in_a_row and membership.has_passed(self._failed_at):
            self._in_a_row = 0

    async def due_within(self, seconds: float) -> bool:
        """Wait for the end of a pause, at most so long; whether it ends by then."""
        pause_s = 0.0 if self._again_at is None else self._again_at - time.monotonic()
        if pause_s > 0:
            await asyncio.sleep(min(pause_s, seconds))
        return pause_s <= seconds

    def again(self, membership: Membership) -> None:
        """The pause is over: go back to where delivery stopped."""
        if self._again_at is not None:
            self._again_at = None
            membership.seek_all()


def backoff_s(tries: int) -> float:
    """Seconds before another try, with jitter: doubled each time, up to the longest."""
    doubled = 2.0 ** min(tries, 30)  # a broker may be away for days, and a float has an end
    longest = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * doubled)
    return random.uniform(longest / 2, longest)  # noqa: S311  jitter, no secret
