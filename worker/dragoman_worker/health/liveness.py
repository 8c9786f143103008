"""Liveness checks of a replica: its signs of life, and how long each may be missing.

Waiting for a server is no fault: the worker waits without a limit for an unavailable broker or
Redis. So a check is suspended while an unavailable server is what delays its sign of life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from dragoman_worker.flow.permits import Permits
from dragoman_worker.health.watchdog import LivenessCheck, LoopGuard, Stuck, Watchdog, run_ticks
from dragoman_worker.job.in_flight import JobsInFlight
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.worker import Worker, WorkerState
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Engine
from dragoman_worker.process.exits import EXITS_AFTER_S

REMEDY_S: Final = 60.0
"""Time without a sign of life after which a check with a remedy tries it."""
FAILS_S: Final = 120.0
"""Time without a sign of life after which most checks fail."""

UNHELD_S: Final = 5.0
"""Time for which an unfinished delivery may have no task; it has one within its own poll."""


def liveness_checks(
    worker: Worker,
    consumer: KafkaConsumer,
    permits: Permits,
    in_flight: JobsInFlight,
    outages: Outages,
    *,
    engine: Engine,
    attempt_timeout_s: float,
    engine_silent_s: float,
) -> list[LivenessCheck]:
    """Return the liveness checks of one replica; none of them does I/O."""
    return [
        _poll_loop(worker),
        LivenessCheck("consumer", lambda: consumer.broken, FAILS_S / 2, EXITS_AFTER_S),
        _deliveries(worker, consumer),
        _commits(consumer),
        _engine(engine, engine_silent_s),
        _permits(permits, outages, attempt_timeout_s),
        _jobs_being_settled(in_flight, permits, outages),
        _deliveries_without_a_task(worker, consumer),
    ]


def _poll_loop(worker: Worker) -> LivenessCheck:
    def polled_at() -> Hashable | None:
        return None if worker.state is WorkerState.STOPPED else worker.polled_at

    return LivenessCheck("poll loop", polled_at, FAILS_S / 2, EXITS_AFTER_S)


def _deliveries(worker: Worker, consumer: KafkaConsumer) -> LivenessCheck:
    """Check deliveries while the broker has records and the worker has capacity for them."""

    def delivered() -> Hashable | None:
        return consumer.delivered if worker.has_capacity and consumer.undelivered() else None

    return LivenessCheck(
        "deliveries",
        delivered,
        FAILS_S,
        EXITS_AFTER_S,
        lambda: consumer.rebuild("the broker has records and delivers none"),
        REMEDY_S,
    )


def _commits(consumer: KafkaConsumer) -> LivenessCheck:
    return LivenessCheck(
        "commits",
        lambda: consumer.commits,
        FAILS_S,
        EXITS_AFTER_S,
        lambda: consumer.rebuild("offsets of finished work are not committed"),
        REMEDY_S,
    )


def _engine(engine: Engine, silent_s: float) -> LivenessCheck:
    """Check that the engine gives signs of life while it has requests; one that does not is dead.

    The worker halts by the engine's death, not by this check: its claims stay outstanding.
    """

    def signs() -> Hashable | None:
        stats = engine.stats()
        return engine.signs_of_life() if stats.running + stats.waiting else None

    def declare_dead() -> None:
        engine.declare_dead(f"does not answer: no sign of life for {silent_s:.0f} s")

    halts_s = silent_s + EXITS_AFTER_S
    return LivenessCheck("engine", signs, silent_s, halts_s, declare_dead, silent_s)


def _permits(permits: Permits, outages: Outages, attempt_timeout_s: float) -> LivenessCheck:
    """Check the oldest permit; it is held for one attempt, or while its job waits for Redis.

    An engine that hangs is found earlier. This finds a task that waits forever with its permit.
    """

    def oldest() -> Hashable | None:
        return None if outages.any else permits.oldest

    fails_s, halts_s = attempt_timeout_s + FAILS_S, attempt_timeout_s + EXITS_AFTER_S
    return LivenessCheck("permits", oldest, fails_s, halts_s)


def _jobs_being_settled(
    in_flight: JobsInFlight, permits: Permits, outages: Outages
) -> LivenessCheck:
    """Check jobs in flight while none of their items is in the engine or waits for a permit."""

    def left() -> Hashable | None:
        settling = len(in_flight) and not permits.held_items and not permits.waiting
        return in_flight.left if settling and not outages.any else None

    return LivenessCheck("jobs being settled", left, FAILS_S, EXITS_AFTER_S)


def _deliveries_without_a_task(worker: Worker, consumer: KafkaConsumer) -> LivenessCheck:
    """Check that each delivered, unfinished record has a task.

    No other check sees a task that ended without a word: its record holds the commit offset of its
    partition back for ever. A draining worker leaves such records to others.
    """

    def place() -> Hashable | None:
        return consumer.unheld(worker.held()) if worker.working else None

    return LivenessCheck(
        "deliveries without a task",
        place,
        UNHELD_S,
        UNHELD_S,
        reason=lambda place: (
            f"nothing works on the record at {place} (topic/partition/offset), a defect of the "
            "worker: the restart delivers it again; report it with the lines before this one"
        ),
    )


def run_watchdog(
    stack: AsyncExitStack,
    guard: LoopGuard,
    checks: Sequence[LivenessCheck],
    worker: Worker,
    metrics: Metrics,
) -> Watchdog:
    """Run the watchdog until `stack` is closed.

    From then until the guard is stopped, the guard limits the time of the shutdown.
    """

    def halt(stuck: Stuck) -> None:
        guard.halting()
        worker.halt(stuck)

    watchdog = Watchdog(checks, halt=halt)
    ticks = asyncio.create_task(run_ticks(watchdog, guard, metrics), name="watchdog")
    ticks.add_done_callback(worker.side_task_ended)
    guard.start()
    stack.callback(ticks.cancel)
    stack.callback(guard.halting)
    return watchdog
