"""Start phases and readiness conditions of one replica."""

from __future__ import annotations

import asyncio

import pytest

from dragoman_connections.settings import KafkaSettings
from dragoman_worker.health.readiness import Readiness, StartPhase
from dragoman_worker.job.outages import Outages
from dragoman_worker.kafka.connection import MISSES_BEFORE_UNAVAILABLE, KafkaAvailability
from dragoman_worker.kafka.topic_watch import TopicWatch
from support.fakes.core import Core


class State:
    """A readiness and all that it looks at."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.topics = TopicWatch(KafkaSettings())
        self.kafka = KafkaAvailability("broker:9092", lambda: False)
        self.worker = Core().build()[-1]
        self.readiness = Readiness(Outages(), self.topics, self.stopping)

    def failing(self) -> list[str]:
        return [name for name, holds in self.readiness.ready_checks().items() if not holds]


@pytest.fixture
async def state() -> State:
    return State()


async def test_each_completed_phase_makes_its_condition_hold(state: State) -> None:
    assert state.failing() == ["Redis", "Kafka", "engine", "consumer group"]
    state.readiness.enter(StartPhase.LANGUAGE_MODEL)
    assert state.failing() == ["engine", "consumer group"]
    assert state.readiness.startup_checks() == {"language model": False}
    state.readiness.enter(StartPhase.CONSUMER_GROUP)
    assert state.failing() == ["consumer group"]


async def test_a_started_replica_is_ready_and_its_startup_has_nothing_open(state: State) -> None:
    state.readiness.started(state.worker, state.kafka)
    assert state.failing() == []
    assert state.readiness.startup_checks() == {}


async def test_a_signal_makes_a_replica_unready_even_while_it_starts(state: State) -> None:
    state.readiness.enter(StartPhase.CONSUMER_GROUP)
    state.stopping.set()
    assert state.failing() == ["consumer group", "not draining"]


async def test_a_worker_that_drains_is_not_ready(state: State) -> None:
    state.readiness.started(state.worker, state.kafka)
    state.worker.stop()
    assert state.failing() == ["not draining"]


async def test_a_broker_that_does_not_answer_makes_kafka_fail(state: State) -> None:
    state.readiness.started(state.worker, state.kafka)
    for _ in range(MISSES_BEFORE_UNAVAILABLE):
        state.kafka.check()
    assert state.failing() == ["Kafka"]


async def test_a_redis_that_does_not_answer_an_idle_worker_makes_redis_fail(state: State) -> None:
    answers = [False]
    state.readiness.store_opened(lambda: answers[0])
    state.readiness.started(state.worker, state.kafka)
    assert state.failing() == ["Redis"]
    answers[0] = True
    assert state.failing() == []


async def test_a_refused_topic_is_named_with_the_reason(state: State) -> None:
    state.readiness.started(state.worker, state.kafka)
    state.topics.refused["results"] = "it does not exist"
    assert state.failing() == ["topic results: it does not exist"]
