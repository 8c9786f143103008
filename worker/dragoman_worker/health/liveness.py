"""Which signs of life does a replica give, and how long may each be missing?

Waiting for a server is no fault: a broker or Redis that is away is waited for without end, so every
watch has nothing to see while that is what holds it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from dragoman_worker.flow.permits import Permits
from dragoman_worker.health.watchdog import LivenessCheck, LoopGuard, Stuck, Watchdog, watching
from dragoman_worker.job.in_flight import JobsInFlight
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.worker import Worker, WorkerState
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.exits import EXITS_AFTER_S

REMEDY_S: Final = 60.0
FAILS_S: Final = 120.0


def liveness_checks(
    worker: Worker,
    consumer: KafkaConsumer,
    permits: Permits,
    in_flight: JobsInFlight,
    outages: Outages,
    *,
    attempt_timeout_s: float,
) -> list[LivenessCheck]:
    """The watches of one replica; none of them does I/O."""

    def polls() -> Hashable | None:
        return None if worker.state is WorkerState.STOPPED else worker.polled_at

    def deliveries() -> Hashable | None:
        """None unless the broker has told of records and there is room for them."""
        return consumer.delivered if worker.has_capacity and consumer.undelivered() else None

    def oldest_item() -> Hashable | None:
        """An item holds its permit for one attempt, or while its job waits for Redis."""
        return None if outages.any else permits.oldest

    def jobs() -> Hashable | None:
        """Jobs in hand of which no item is in the engine or waits for it: they are being ended."""
        ending = len(in_flight) and not permits.held_items and not permits.waiting
        return in_flight.left if ending and not outages.any else None

    return [
        LivenessCheck("poll loop", polls, FAILS_S / 2, EXITS_AFTER_S),
        LivenessCheck("consumer", lambda: consumer.broken, FAILS_S / 2, EXITS_AFTER_S),
        LivenessCheck(
            "deliveries",
            deliveries,
            FAILS_S,
            EXITS_AFTER_S,
            lambda: consumer.rebuild("records are there and none is delivered"),
            REMEDY_S,
        ),
        LivenessCheck(
            "commits",
            lambda: consumer.commits,
            FAILS_S,
            EXITS_AFTER_S,
            lambda: consumer.rebuild("finished work is not committed"),
            REMEDY_S,
        ),
        LivenessCheck(
            "items in the engine",
            oldest_item,
            attempt_timeout_s + FAILS_S,
            attempt_timeout_s + EXITS_AFTER_S,
        ),
        LivenessCheck("jobs being ended", jobs, FAILS_S, EXITS_AFTER_S),
    ]


def run_watchdog(
    stack: AsyncExitStack,
    guard: LoopGuard,
    checks: Sequence[LivenessCheck],
    worker: Worker,
    metrics: Metrics,
) -> Watchdog:
    """Watch until `stack` is left; from then until the guard is stopped, the end is bounded."""

    def end(why: Stuck) -> None:
        guard.halting()
        worker.halt(why)

    watchdog = Watchdog(checks, end=end)
    ticks = asyncio.create_task(watching(watchdog, guard, metrics), name="watchdog")
    ticks.add_done_callback(worker.side_task_ended)
    guard.start()
    stack.callback(ticks.cancel)
    stack.callback(guard.halting)
    return watchdog
