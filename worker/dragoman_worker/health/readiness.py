"""Start phases and readiness conditions of one replica, as /startupz and /readyz show them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from dragoman_worker.job.outages import DEAD_LETTERS, RESULTS, STORE, Outages
from dragoman_worker.job.worker import Worker, WorkerState
from dragoman_worker.kafka.connection import KafkaAvailability
from dragoman_worker.kafka.topic_watch import TopicWatch
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.parent_link import ReplicaSlot

_CHECK_SETTLED_EVERY_S: Final = 0.5


class StartPhase(StrEnum):
    """The phases of a start, in order; the values are the names on /startupz."""

    REDIS = "Redis"
    KAFKA = "Kafka"
    LANGUAGE_MODEL = "language model"
    ENGINE = "engine"
    CONSUMER_GROUP = "consumer group"


_ORDER = tuple(StartPhase)


class Readiness:
    """State that `App` sets and that the pages and the sampler read. Event loop only, no I/O."""

    def __init__(self, outages: Outages, topics: TopicWatch, stopping: asyncio.Event) -> None:
        self._outages = outages
        self._topics = topics
        self._stopping = stopping
        self._phase: StartPhase | None = StartPhase.REDIS
        self._worker: Worker | None = None
        self._kafka: KafkaAvailability | None = None
        self._store_answers: Callable[[], bool] = lambda: True

    def store_opened(self, answers: Callable[[], bool]) -> None:
        """Record the connection to Redis; `answers` is false in an outage, also without jobs."""
        self._store_answers = answers

    def enter(self, phase: StartPhase) -> None:
        """Record that all phases before `phase` are completed."""
        self._phase = phase

    def started(self, worker: Worker, kafka: KafkaAvailability) -> None:
        """Record that the start is completed; from now on the states of these two count."""
        self._phase, self._worker, self._kafka = None, worker, kafka

    def startup_checks(self) -> Mapping[str, bool]:
        """Return the phase in progress as a failing check, or nothing once started."""
        return {} if self._phase is None else {self._phase.value: False}

    def ready_checks(self) -> Mapping[str, bool]:
        """Return the readiness conditions by name; the replica is ready if all hold."""
        return {
            "Redis": self._passed(StartPhase.REDIS) and self._redis_answers(),
            "Kafka": self._passed(StartPhase.KAFKA) and self._kafka_answers(),
            **{f"topic {name}: {why}": False for name, why in self._topics.refused.items()},
            "engine": self._passed(StartPhase.ENGINE),
            "consumer group": self._passed(StartPhase.CONSUMER_GROUP),
            "not draining": not self._draining(),
        }

    def _passed(self, phase: StartPhase) -> bool:
        return self._phase is None or _ORDER.index(self._phase) > _ORDER.index(phase)

    def _redis_answers(self) -> bool:
        return self._store_answers() and not self._outages.of(STORE)

    def _kafka_answers(self) -> bool:
        """Return whether Kafka answers; writes that a topic refuses have their own condition."""
        if self._kafka is not None and self._kafka.unavailable:
            return False
        return bool(self._topics.refused) or not self._outages.of(DEAD_LETTERS, RESULTS)

    def _draining(self) -> bool:
        worker = self._worker
        stopped = worker is not None and worker.state is not WorkerState.WORKING
        return stopped or self._stopping.is_set()


async def report_settled(slot: ReplicaSlot, metrics: Metrics) -> None:
    """Report the first finished job; the supervisor then counts the replica as recovered."""
    while True:
        await asyncio.sleep(_CHECK_SETTLED_EVERY_S)
        if metrics.jobs_done():
            break
    slot.parent_link.settled()
