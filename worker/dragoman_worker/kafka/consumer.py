"""Where do deliveries come from? Kafka, with commits of our own that never pass unfinished work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from aiokafka.errors import OffsetOutOfRangeError

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt
from dragoman_worker.kafka.committer import Committer
from dragoman_worker.kafka.connection import connected, forbidden, not_allowed, passes, told
from dragoman_worker.kafka.fetching import POLL_MS, Fetching
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.kafka.resyncs import UNFETCHED, Resyncs, backoff_s
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery
from dragoman_worker.process.parent_link import GroupMember

IDLE_POLL_S: Final = 10.0
"""With no room we do not poll; this often we do all the same, paused, to stay in the group."""
REBUILDS_BEFORE_HALT: Final = 6
"""Consumers in a row that never polled well; waiting for a broker that is away is not counted."""
JOIN_WITHIN_S: Final = 90.0
"""Longer than a rebalance may take."""
JOINING_LOOK_S: Final = 0.02
"""aiokafka announces no member id, and may have one long before the first assignment. A process
that is killed before it has reported its id holds up the group until the session times out."""
JOINED_LOOK_S: Final = 0.25
"""A member gets another id only after it was expelled."""


class KafkaConsumer:
    """A member of the consumer group. One a process: aiokafka's sticky assignor is global.

    A consumer that can no longer be trusted is replaced by a new one, while the trackers of its
    partitions stay: work in hand completes if the partition comes back as it was left.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        partition_span: int,
        client_id: str,
        metrics: Metrics,
        joined: Callable[[GroupMember], None] | None = None,
    ) -> None:
        """`joined` is called with each new group membership as soon as it begins."""
        self._settings = settings
        self._span = partition_span
        self._client_id = client_id
        self._metrics = metrics
        self._log = logger()
        self._partitions = Partitions(metrics)
        self._committer = Committer(self._partitions, lambda: self._membership, metrics)
        self._membership: Membership | None = None
        self._fetching = Fetching(self._partitions)
        self._capacity = Capacity(1)
        self._joined = joined
        self._reported = ""
        self._reporting: asyncio.Task[None] | None = None
        self._rebuilding: asyncio.Task[None] | None = None
        self._rebuilds_in_a_row = 0
        self._resyncs = Resyncs(metrics)
        self._polled_at = time.monotonic()
        self.delivered = 0
        """Records given out so far: a sign of life."""

    # --- life -------------------------------------------------------------------------------------

    async def start(self, within: Deadline) -> None:
        """Join the group. Raises Unreachable, and Halt if we are not allowed to."""
        self._reporting = asyncio.create_task(self._report_forever(), name="membership")
        await connected(self._new_membership, self._settings, within)
        self._report()  # at once: what follows a start may hold the event loop
        self._committer.start()

    async def close(self) -> None:
        """Commit what is finished and leave the group. Bounded, whatever the broker does."""
        if self._rebuilding is not None:
            self._rebuilding.cancel()
            await asyncio.gather(self._rebuilding, return_exceptions=True)
        await self._fetching.abandon()
        await self._committer.stop()
        if self._membership is not None:
            await self._membership.stop()
        if self._reporting is not None:
            self._reporting.cancel()

    async def _report_forever(self) -> None:
        while True:
            self._report()
            known = self._membership is not None and self._membership.member_id
            await asyncio.sleep(JOINED_LOOK_S if known else JOINING_LOOK_S)

    def _report(self) -> None:
        """Report a new member id. The last one stands while there is none."""
        member_id = self._membership.member_id if self._membership is not None else ""
        if self._joined is not None and member_id not in ("", self._reported):
            self._joined(GroupMember(self._settings.group_id, member_id))
            self._reported = member_id

    def _new_membership(self) -> Membership:
        # Its callbacks run, and commit, before its start has returned.
        self._membership = Membership(
            self._settings,
            client_id=self._client_id,
            partitions=self._partitions,
            commit=self._committer.commit,
            metrics=self._metrics,
        )
        return self._membership

    # --- poll -------------------------------------------------------------------------------------

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """New deliveries; see the port. Bounded even while no broker answers."""
        if self._committer.refused is not None:
            raise not_allowed(self._committer.refused)
        if self._committer.ended:
            raise Halt("the task that commits has ended")
        self._capacity = capacity
        if capacity.jobs and self._fetching.ready:
            return self._given_out(capacity)
        if capacity.jobs == 0 and time.monotonic() - self._polled_at < IDLE_POLL_S:
            return ()
        membership = await self._membership_to_poll()
        if membership is None:
            return ()
        self._polled_at = time.monotonic()
        if not self._fetching.under_way:
            membership.pause_and_resume(capacity=capacity.jobs, span=self._span)
            self._fetching.begin(membership, capacity)
        # In a rebalance getmany waits for its end: so do later polls.
        fetch = await self._fetching.ended_within(2 * POLL_MS / 1000)
        if fetch is None:
            return ()
        await self._outcome(membership, fetch)
        return self._given_out(capacity)

    def _given_out(self, capacity: Capacity) -> list[Delivery]:
        deliveries = self._fetching.out(capacity)
        self.delivered += len(deliveries)
        return deliveries

    async def _membership_to_poll(self) -> Membership | None:
        """The consumer, if it has an assignment; a broken one is being replaced."""
        membership = self._membership
        if self._rebuilding is None and membership is not None and (why := membership.broken):
            self.rebuild(why)
        if self._rebuilding is not None:
            await asyncio.wait({self._rebuilding}, timeout=POLL_MS / 1000)
            if self._rebuilding.done():
                rebuilding, self._rebuilding = self._rebuilding, None
                rebuilding.result()  # or Halt
            return None
        if membership is None or self._fetching.under_way:
            return membership
        # A new assignment is published before its callback has run: it has no positions yet.
        poll_s = POLL_MS / 1000
        ready = await self._resyncs.due_within(poll_s) and await membership.assigned_within(poll_s)
        if not ready or self._membership is not membership:
            return None
        self._resyncs.again(membership)
        return membership

    async def _outcome(self, membership: Membership, fetch: asyncio.Task[int]) -> None:
        """Heal what broke. Raises Halt.

        An exception out of getmany leaves aiokafka's max_poll_interval without effect for good,
        with a consumer that is kept as with one that is not; the worker's watchdog stands in.
        """
        if fetch.cancelled():  # what it waited for was; nobody cancels a fetch of a living member
            self.rebuild("a fetch was cancelled")
            return
        try:
            found = fetch.result()
        except OffsetOutOfRangeError as error:
            await membership.out_of_range(error.args[0])
        except UNFETCHED as error:
            self._resyncs.failed(membership, error)
        except Exception as error:
            if forbidden(error):
                raise not_allowed(error) from error
            self.rebuild(told(error))
        else:
            self._resyncs.forgive(membership)
            if found or membership.undelivered(self._capacity) == 0:
                self._rebuilds_in_a_row = 0

    # --- a new consumer ---------------------------------------------------------------------------

    def rebuild(self, why: str) -> None:
        """Replace the consumer, in the background; meanwhile nothing is delivered. Idempotent."""
        if self._rebuilding is None:
            self._rebuilding = asyncio.create_task(self._rebuild(why), name="rebuild")

    @property
    def rebuilding(self) -> bool:
        """Whether a new consumer is on its way, perhaps waiting for a broker."""
        return self._rebuilding is not None

    async def _rebuild(self, why: str) -> None:
        self._count_rebuild(why)
        await self._committer.commit()
        membership, self._membership = self._membership, None
        await self._fetching.abandon()
        if membership is not None:
            await membership.stop()
        tries = self._rebuilds_in_a_row
        while True:
            await asyncio.sleep(backoff_s(tries))
            membership = self._new_membership()
            try:
                async with asyncio.timeout(JOIN_WITHIN_S):
                    await membership.start()
            except Exception as error:
                await membership.stop()
                if forbidden(error):
                    raise not_allowed(error) from error
                if not passes(error):
                    self._count_rebuild(told(error))
                self._log.warning("waiting_for_kafka", error=type(error).__name__)
                tries += 1
            else:
                return

    def _count_rebuild(self, why: str) -> None:
        self._rebuilds_in_a_row += 1
        if self._rebuilds_in_a_row > REBUILDS_BEFORE_HALT:
            raise Halt(
                f"the Kafka consumer cannot go on ({why}), and {REBUILDS_BEFORE_HALT} new ones "
                "could not either"
            )
        self._metrics.consumer_rebuilds.inc()
        self._log.error("consumer_rebuilt", why=why, times=self._rebuilds_in_a_row)

    # --- complete and commit ----------------------------------------------------------------------

    def complete(self, delivery: Delivery) -> None:
        """Mark as finished; an old epoch's delivery belongs to somebody else now."""
        self._partitions.complete(delivery)

    def still_assigned(self, delivery: Delivery) -> bool:
        """Whether completing the delivery would still count."""
        return self._partitions.still_assigned(delivery)

    async def commit(self) -> None:
        """Commit every watermark that has moved. Never raises: what failed is due again."""
        await self._committer.commit()

    # --- readings ---------------------------------------------------------------------------------

    def lags(self) -> dict[str, int]:
        """Records of our partitions that are not finished, by topic, as the broker has told."""
        membership, lags = self._membership, dict.fromkeys(self._settings.topic_names, 0)
        if membership is None:
            return lags
        for partition in membership.consumer.assignment():
            offsets, end = self._partitions.get(partition), membership.consumer.highwater(partition)
            if offsets is not None and end is not None:
                lags[partition.topic] += max(0, end - offsets.commit_offset)
        return lags

    def undelivered(self) -> int:
        """Offsets that the broker would give us and that we have not been given, now."""
        if self._membership is None or self.rebuilding:
            return 0
        return self._membership.undelivered(self._capacity)

    def queued(self) -> int:
        """Records that are there and have not been given out, as far as the broker has told."""
        return (
            self._membership.known() if self._membership is not None and not self.rebuilding else 0
        )

    @property
    def cut_off(self) -> bool:
        """Whether nothing can come, because no broker answers."""
        return self.rebuilding or self.answered() is False

    def commit_age_s(self) -> float:
        """Seconds that finished work has gone uncommitted; 0 while there is none."""
        return self._committer.age_s()

    @property
    def commits(self) -> int | None:
        """Commits acknowledged so far; None while none is due or no broker is there to take it."""
        waiting = self.rebuilding or self._committer.broker_away or not self._committer.due()
        return None if waiting else self._committer.acknowledged

    def answered(self) -> bool | None:
        """Whether any broker answers our consumer; None while there is none."""
        return None if self._membership is None else self._membership.answered

    @property
    def broken(self) -> str | None:
        """What is wrong with the consumer, while nothing is being done about it."""
        return None if self._membership is None or self.rebuilding else self._membership.broken
