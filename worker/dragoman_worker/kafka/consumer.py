"""Kafka consumer: polls deliveries, commits only finished offsets, replaces broken clients."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from aiokafka.errors import OffsetOutOfRangeError

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.backoff import pause_s
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, RecordsDropped
from dragoman_worker.kafka.committer import Committer
from dragoman_worker.kafka.connection import connected, forbidden, is_outage, loggable, not_allowed
from dragoman_worker.kafka.fetching import BACKOFF, FETCH_ERRORS, POLL_MS, Fetching, Resyncs
from dragoman_worker.kafka.membership import Membership
from dragoman_worker.kafka.partitions import Partitions
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Capacity, Delivery

COMMIT_EVERY_S: Final = 0.5
IDLE_POLL_S: Final = 10.0
"""Seconds between polls without capacity: paused polls that only keep the group membership."""
REBUILDS_BEFORE_HALT: Final = 6
"""Replaced consumers in a row without a successful poll; waits for a broker do not count."""
JOIN_WITHIN_S: Final = 90.0
"""Longest time to join the group, longer than a rebalance may take."""


class KafkaConsumer:
    """Consumer port on Kafka: one group member per process (aiokafka's assignor has globals).

    A broken aiokafka consumer is replaced by a new one, while the trackers of its partitions stay.
    Jobs in flight then complete if the partition comes back at the same committed offset.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        partition_span: int,
        client_id: str,
        metrics: Metrics,
        in_box: bool = False,
    ) -> None:
        """`in_box`: the broker keeps records in memory, and drops the oldest when it is full."""
        self._settings = settings
        self._in_box = in_box
        self._span = partition_span
        self._client_id = client_id
        self._metrics = metrics
        self._log = logger()
        self._partitions = Partitions(metrics, gapless=in_box)
        self._committer = Committer(self._partitions, metrics)
        self._committing: asyncio.Task[None] | None = None
        self._fetching = Fetching(self._partitions, metrics)
        self._membership: Membership | None = None
        self._capacity = Capacity(1)
        self._rebuilding: asyncio.Task[None] | None = None
        self._rebuilds_in_a_row = 0
        self._resyncs = Resyncs(metrics)
        self._polled_at = time.monotonic()
        self.delivered = 0
        """Number of records delivered so far: a sign of life."""

    # --- life -------------------------------------------------------------------------------------

    async def start(self, within: Deadline) -> None:
        """Join the group. Raises Unreachable, and Halt if the broker denies it."""
        await connected(self._new_membership, self._settings, within)
        self._committing = asyncio.create_task(self._commit_forever(), name="committer")

    async def close(self) -> None:
        """Commit the finished offsets and leave the group. Bounded, whatever the broker does."""
        if self._rebuilding is not None:
            self._rebuilding.cancel()
            await asyncio.gather(self._rebuilding, return_exceptions=True)
        await self._fetching.cancel()
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.gather(self._committing, return_exceptions=True)
        await self._committer.commit_last(self._membership)
        if self._membership is not None:
            await self._membership.stop()

    def _new_membership(self) -> Membership:
        self._membership = Membership(
            self._settings,
            client_id=self._client_id,
            partitions=self._partitions,
            commit=self._committer.commit,
            in_box=self._in_box,
        )
        return self._membership

    # --- poll -------------------------------------------------------------------------------------

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """Return new deliveries, as the port says; bounded even while no broker answers."""
        if self._committer.refused is not None:
            raise not_allowed(self._committer.refused)
        if self._committing is not None and self._committing.done():
            raise Halt("the task that commits offsets has stopped")
        self._capacity = capacity
        if capacity.jobs and self._fetching.ready:
            return self._deliver(capacity)
        if capacity.jobs == 0 and time.monotonic() - self._polled_at < IDLE_POLL_S:
            return ()
        membership = await self._membership_to_poll()
        if membership is None:
            return ()
        self._polled_at = time.monotonic()
        if not self._fetching.running:
            membership.pause_and_resume(capacity=capacity.jobs, span=self._span)
            self._fetching.begin(membership, capacity)
        # getmany waits until a rebalance is over: so do later polls.
        fetch = await self._fetching.finished_within(2 * POLL_MS / 1000)
        if fetch is None:
            return ()
        await self._handle(membership, fetch)
        return self._deliver(capacity)

    def _deliver(self, capacity: Capacity) -> list[Delivery]:
        if dropped := self._partitions.dropped:
            raise RecordsDropped(dropped)
        deliveries = self._fetching.pop(capacity)
        self.delivered += len(deliveries)
        return deliveries

    async def _membership_to_poll(self) -> Membership | None:
        """Return the membership if it has an assignment; start to replace a broken one."""
        membership = self._membership
        if self._rebuilding is None and membership is not None and (why := membership.broken):
            self.rebuild(why)
        if self._rebuilding is not None:
            await asyncio.wait({self._rebuilding}, timeout=POLL_MS / 1000)
            if self._rebuilding.done():
                rebuilding, self._rebuilding = self._rebuilding, None
                rebuilding.result()  # or Halt
            return None
        if membership is None or self._fetching.running:
            return membership
        # A new assignment is published before its callback has run: it has no positions yet.
        poll_s = POLL_MS / 1000
        ready = await self._resyncs.due_within(poll_s) and await membership.assigned_within(poll_s)
        if not ready or self._membership is not membership:
            return None
        self._resyncs.resume(membership)
        return membership

    async def _handle(self, membership: Membership, fetch: asyncio.Task[int]) -> None:
        """Recover from the error of a fetch. Raises Halt.

        After an exception from getmany, aiokafka no longer enforces max_poll_interval, whether or
        not the consumer is replaced; the worker's watchdog does it instead.
        """
        if (
            fetch.cancelled()
        ):  # cancelled inside aiokafka: this class cancels no fetch of a member in use
            self.rebuild("a fetch was cancelled")
            return
        try:
            found = fetch.result()
        except OffsetOutOfRangeError as error:
            await self._fetching.out_of_range(membership, error.args[0])
        except FETCH_ERRORS as error:
            self._resyncs.failed(membership, error)
        except Exception as error:
            if forbidden(error):
                raise not_allowed(error) from error
            self.rebuild(loggable(error))
        else:
            self._resyncs.succeeded(membership)
            if found or membership.undelivered(self._capacity) == 0:
                self._rebuilds_in_a_row = 0

    # --- a new consumer ---------------------------------------------------------------------------

    def rebuild(self, why: str) -> None:
        """Replace the consumer in the background; no record is delivered meanwhile. Idempotent."""
        if self._rebuilding is None:
            self._rebuilding = asyncio.create_task(self._rebuild(why), name="rebuild")

    @property
    def rebuilding(self) -> bool:
        """Whether the consumer is being replaced, which may wait for a broker."""
        return self._rebuilding is not None

    async def _rebuild(self, why: str) -> None:
        self._count_rebuild(why)
        await self._committer.commit(self._membership)
        membership, self._membership = self._membership, None
        await self._fetching.cancel()
        if membership is not None:
            await membership.stop()
        tries = self._rebuilds_in_a_row
        while True:
            await asyncio.sleep(pause_s(BACKOFF, tries))
            membership = self._new_membership()
            try:
                async with asyncio.timeout(JOIN_WITHIN_S):
                    await membership.start()
            except Exception as error:
                await membership.stop()
                if forbidden(error):
                    raise not_allowed(error) from error
                if not is_outage(error):
                    self._count_rebuild(loggable(error))
                self._log.warning("waiting_for_kafka", error=type(error).__name__)
                tries += 1
            else:
                return

    def _count_rebuild(self, why: str) -> None:
        self._rebuilds_in_a_row += 1
        if self._rebuilds_in_a_row > REBUILDS_BEFORE_HALT:
            raise Halt(
                f"the Kafka consumer fails ({why}), and {REBUILDS_BEFORE_HALT} new ones failed too"
            )
        self._metrics.consumer_rebuilds.inc()
        self._log.error("consumer_rebuilt", why=why, times=self._rebuilds_in_a_row)

    # --- complete and commit ----------------------------------------------------------------------

    def complete(self, delivery: Delivery) -> None:
        """Mark as finished; a delivery of an earlier assignment is only counted."""
        self._partitions.complete(delivery)

    def still_assigned(self, delivery: Delivery) -> bool:
        """Whether the delivery's partition is still assigned in the delivery's generation."""
        return self._partitions.still_assigned(delivery)

    def unheld(self, held: Mapping[int, AbstractSet[int]]) -> str | None:
        """Return the place of the first unfinished delivery that is not `held`, None if all are.

        `held` has the offsets that tasks work on, by generation.
        """
        every = defaultdict(set, {generation: set(offsets) for generation, offsets in held.items()})
        for delivery in self._fetching.held():
            every[delivery.generation].add(delivery.offset)
        return self._partitions.unheld(every)

    async def commit(self) -> None:
        """Commit every commit offset that has moved. Never raises: a failed commit is due again."""
        await self._committer.commit(self._membership)

    async def _commit_forever(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            await self._committer.commit_and_check(self._membership)

    # --- stats ------------------------------------------------------------------------------------

    def lags(self) -> dict[str, int]:
        """Return the unfinished records of assigned partitions by topic, as last reported."""
        membership, lags = self._membership, dict.fromkeys(self._settings.topic_names, 0)
        if membership is None:
            return lags
        for partition in membership.consumer.assignment():
            offsets, end = self._partitions.get(partition), membership.consumer.highwater(partition)
            if offsets is not None and end is not None:
                lags[partition.topic] += max(0, end - offsets.commit_offset)
        return lags

    def undelivered(self) -> int:
        """Return how many offsets could be delivered now, within capacity, and have not been."""
        if self._membership is None or self.rebuilding:
            return 0
        return self._membership.undelivered(self._capacity)

    def queued(self) -> int:
        """Return how many records have not been delivered, as last reported by the broker."""
        return (
            self._membership.backlog()
            if self._membership is not None and not self.rebuilding
            else 0
        )

    @property
    def cut_off(self) -> bool:
        """Whether no record can arrive because no broker answers."""
        return self.rebuilding or self.answered() is False

    def commit_age_s(self) -> float:
        """Return the seconds that finished work has been uncommitted; 0 while there is none."""
        return self._committer.age_s()

    @property
    def commits(self) -> int | None:
        """Commits acknowledged so far; None while none is due or no broker is available."""
        committer = self._committer
        due = not self.rebuilding and committer.due(self._membership)
        return committer.acknowledged if due and not committer.broker_unavailable else None

    def answered(self) -> bool | None:
        """Return whether any broker answers the consumer; None while there is no consumer."""
        return None if self._membership is None else self._membership.answered

    @property
    def broken(self) -> str | None:
        """Why the consumer must be replaced; None while it works or is being replaced."""
        return None if self._membership is None or self.rebuilding else self._membership.broken
