"""Leaders and coordinators that keep moving cost no job and hold up no commit for long."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes.job_line import JobLine
from support.services.mock_broker import MockBroker
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.chaos

PARTITIONS = 4
MOVES = 10
EVERY_S = 1.0


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with MockBroker(3) as made:
        yield made


@pytest.fixture
def line(broker: MockBroker, redis_server: RedisServer, tmp_path: Path) -> Iterator[JobLine]:
    broker.create_topic("jobs", PARTITIONS)
    broker.create_topic("jobs-dead", 1)
    with JobLine(
        tmp_path,
        kafka=broker.bootstrap,
        redis_url=redis_server.url,
        topic="jobs",
        partitions=PARTITIONS,
        # Few at a time, so that there is always a record left to fetch.
        settings={"kafka.session_timeout_s": 3, "limits.max_in_flight_jobs": 16},
    ) as made:
        made.working()
        made.check(made.put(4))
        yield made


def ticks(count: int) -> Iterator[int]:
    """Yield 0, 1, 2, ... one per second: the pace of the moves is what the test is about."""
    begun = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begun + number * EVERY_S - time.monotonic()))
        yield number


def test_a_coordinator_that_moves_every_second_holds_no_commit_up_for_long(
    line: JobLine, broker: MockBroker
) -> None:
    ids: list[str] = []
    commits: set[float] = set()
    for number in ticks(MOVES):
        broker.set_coordinator(line.group, broker.brokers[number % 3])
        ids += line.put(20, "#!sleep 0.2\n")
        commits.add(line.worker.metric("dragoman_commits_total"))
    line.check(ids)
    assert len(commits) > MOVES / 3, f"too few commits between two moves: {sorted(commits)}"
    assert line.worker.running


def test_leaders_that_move_and_go_missing_cost_no_job(line: JobLine, broker: MockBroker) -> None:
    homes = itertools.cycle(broker.brokers)
    ids = line.put(160, "#!sleep 0.5\n")
    for number in ticks(8):
        for partition in range(PARTITIONS):
            broker.set_leader(line.topic, partition, next(homes))
        if number % 3 == 2:
            broker.set_leader(line.topic, number % PARTITIONS, -1)
        if number % 3 == 0:
            next(homes)
    for partition in range(PARTITIONS):
        broker.set_leader(line.topic, partition, next(homes))
    line.check(ids)
    assert line.worker.running
