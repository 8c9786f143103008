"""A worker survives every error of Kafka's protocol and loses nothing, on a mock cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.processes.job_line import JobLine
from support.processes.waiting import wait_until
from support.services.mock_broker import Api, Error, MockBroker
from support.services.plain_clients import DeadLetter, publish, read_all
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.chaos

JOBS, DEAD_LETTERS = 1, 2
"""The broker of the jobs and the group, and the broker of the dead letters."""
BETWEEN_FAULTS = 40
"""Number of jobs in flight during the errors, 0.2 s each."""


@contextmanager
def mocked(server: RedisServer, folder: Path) -> Iterator[tuple[MockBroker, JobLine]]:
    """Start two brokers and a line on them, without a worker."""
    with MockBroker(2) as broker:
        broker.create_topic("jobs", 4, leader=JOBS)
        broker.create_topic("jobs-dead", 1, leader=DEAD_LETTERS)
        broker.set_coordinator("jobs-group", JOBS)
        with JobLine(
            folder,
            kafka=broker.bootstrap,
            redis_url=server.url,
            topic="jobs",
            partitions=4,
            settings={"kafka.session_timeout_s": 3},
        ) as made:
            yield broker, made


@pytest.fixture(scope="module")
def world(
    redis_installed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MockBroker, JobLine]]:
    folder = tmp_path_factory.mktemp("line")
    with RedisServer(binary=redis_installed) as server, mocked(server, folder) as made:
        yield made


@pytest.fixture
def broker(world: tuple[MockBroker, JobLine]) -> MockBroker:
    return world[0]


@pytest.fixture
def line(world: tuple[MockBroker, JobLine]) -> Iterator[JobLine]:
    """Return a line with a running worker, a new one if the last has died; it must survive."""
    _, shared = world
    goes_on = bool(shared.workers) and shared.worker.running
    worker = shared.working()
    if not goes_on:
        shared.check(shared.put(4))
    yield shared
    assert shared.worker is worker
    assert worker.running


def all_met(broker: MockBroker, api: Api, number: int = JOBS) -> None:
    """Wait until all pushed errors have been returned: a test without its fault proves nothing."""
    wait_until(
        lambda: broker.failures_left(api, number) == 0, timeout_s=60, what=f"{api.name} has failed"
    )


COMMIT_ERRORS = [
    Error.NOT_COORDINATOR,
    Error.LOAD_IN_PROGRESS,
    Error.REQUEST_TIMED_OUT,
    Error.DISCONNECT,
    Error.UNKNOWN_MEMBER,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.OFFSET_METADATA_TOO_LARGE,
    Error.UNKNOWN,
]


@pytest.mark.parametrize("error", COMMIT_ERRORS, ids=lambda error: error.name.lower())
def test_a_failed_commit_is_repeated_by_the_same_worker(
    error: Error, line: JobLine, broker: MockBroker
) -> None:
    broker.fail(Api.OFFSET_COMMIT, error, error, broker=JOBS)
    ids = line.put(BETWEEN_FAULTS, "#!sleep 0.2\n")
    all_met(broker, Api.OFFSET_COMMIT)
    line.check(ids + line.put(BETWEEN_FAULTS))


HEARTBEAT_ERRORS = [
    Error.REBALANCE_IN_PROGRESS,
    Error.ILLEGAL_GENERATION,
    Error.UNKNOWN_MEMBER,
    Error.NOT_COORDINATOR,
    Error.DISCONNECT,
    Error.UNKNOWN,
    Error.FENCED_INSTANCE_ID,
]


@pytest.mark.parametrize("error", HEARTBEAT_ERRORS, ids=lambda error: error.name.lower())
def test_a_failed_heartbeat_costs_the_membership_and_no_job(
    error: Error, line: JobLine, broker: MockBroker
) -> None:
    ids = line.put(BETWEEN_FAULTS, "#!sleep 0.5\n")
    broker.fail(Api.HEARTBEAT, error, broker=JOBS)
    all_met(broker, Api.HEARTBEAT)
    line.check(ids + line.put(BETWEEN_FAULTS))


FETCH_ERRORS = [
    Error.NOT_LEADER,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.REQUEST_TIMED_OUT,
    Error.UNKNOWN,
    Error.DISCONNECT,
]


@pytest.mark.parametrize("error", FETCH_ERRORS, ids=lambda error: error.name.lower())
def test_a_failed_fetch_is_repeated_at_the_same_offset(
    error: Error, line: JobLine, broker: MockBroker
) -> None:
    broker.fail(Api.FETCH, *[error] * 3, broker=JOBS)
    ids = line.put(BETWEEN_FAULTS, "#!sleep 0.2\n")
    all_met(broker, Api.FETCH)
    line.check(ids + line.put(BETWEEN_FAULTS))


JOIN_ERRORS = {
    Api.JOIN_GROUP: [
        Error.LOAD_IN_PROGRESS,
        Error.NOT_COORDINATOR,
        Error.UNKNOWN_MEMBER,
        Error.UNKNOWN,
    ],
    Api.SYNC_GROUP: [
        Error.REBALANCE_IN_PROGRESS,
        Error.ILLEGAL_GENERATION,
        Error.DISCONNECT,
        Error.UNKNOWN,
    ],
    Api.OFFSET_FETCH: [Error.LOAD_IN_PROGRESS, Error.NOT_COORDINATOR, Error.UNKNOWN],
}


@pytest.mark.parametrize("api", JOIN_ERRORS, ids=lambda api: api.name.lower())
def test_a_rebalance_whose_requests_fail_ends_with_all_partitions_in_use(
    api: Api, line: JobLine, broker: MockBroker
) -> None:
    ids = line.put(BETWEEN_FAULTS, "#!sleep 0.5\n")
    broker.fail(api, *JOIN_ERRORS[api], broker=JOBS)  # one after the other
    broker.fail(Api.HEARTBEAT, Error.UNKNOWN_MEMBER, broker=JOBS)  # makes it join again
    all_met(broker, Api.HEARTBEAT)
    all_met(broker, api)
    line.check(ids + line.put(BETWEEN_FAULTS))


START_ERRORS = [
    (Api.METADATA, Error.DISCONNECT),
    (Api.FIND_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE),
    (Api.FIND_COORDINATOR, Error.DISCONNECT),
    (Api.JOIN_GROUP, Error.UNKNOWN),
    (Api.SYNC_GROUP, Error.UNKNOWN),
    (Api.OFFSET_FETCH, Error.UNKNOWN),
    (Api.LIST_OFFSETS, Error.UNKNOWN),
    (Api.INIT_PRODUCER_ID, Error.LOAD_IN_PROGRESS),
]


def test_a_worker_starts_although_the_first_requests_of_every_kind_fail(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    # On separate brokers: an error without a request here would meet a later test.
    with mocked(redis_server, tmp_path) as (broker, line):
        ids = line.put(BETWEEN_FAULTS)
        for api, error in START_ERRORS:
            for number in (JOBS, DEAD_LETTERS):
                broker.fail(api, error, broker=number)
        line.working()
        line.wait_for_end(ids)
        asked_of_either = {Api.METADATA, Api.FIND_COORDINATOR, Api.INIT_PRODUCER_ID}
        assert [
            api.name
            for api, _ in START_ERRORS
            if broker.failures_left(api, JOBS)
            and not (api in asked_of_either and not broker.failures_left(api, DEAD_LETTERS))
        ] == []
        line.check(ids)


# --- dead letters ---------------------------------------------------------------------------------


def put_rejected(line: JobLine) -> str:
    """Publish a job that must become a dead letter and return its id."""
    bad = line.job() | {"target_lang": "xx-none"}
    publish(line.kafka, line.topic, [bad])
    return str(bad["job_id"])


def dead_letters_of(line: JobLine, job_id: str) -> list[DeadLetter]:
    return [
        letter
        for letter in read_all(line.kafka, line.dead)
        if letter.headers.get("x-job-id") == job_id
    ]


PRODUCE_ERRORS = [
    Error.NOT_ENOUGH_REPLICAS,
    Error.REQUEST_TIMED_OUT,
    Error.OUT_OF_ORDER_SEQUENCE,
    Error.DISCONNECT,
    Error.UNKNOWN,
]


@pytest.mark.parametrize("error", PRODUCE_ERRORS, ids=lambda error: error.name.lower())
def test_a_dead_letter_that_is_refused_is_sent_until_it_is_acknowledged(
    error: Error, line: JobLine, broker: MockBroker
) -> None:
    broker.fail(Api.PRODUCE, *[error] * 3, broker=DEAD_LETTERS)
    bad = put_rejected(line)
    ids = line.put(BETWEEN_FAULTS)
    line.wait_for_end([bad])
    assert broker.failures_left(Api.PRODUCE, DEAD_LETTERS) == 0, (
        "failed in Redis before its dead letter"
    )
    assert {letter.code for letter in dead_letters_of(line, bad)} == {"unsupported_language"}
    line.check(ids)


def test_a_dead_letter_refused_with_a_larger_one_is_sent_by_itself_and_whole(
    line: JobLine, broker: MockBroker
) -> None:
    broker.fail(Api.PRODUCE, Error.MESSAGE_TOO_LARGE, broker=DEAD_LETTERS)
    bad = put_rejected(line)
    line.wait_for_end([bad])
    assert broker.failures_left(Api.PRODUCE, DEAD_LETTERS) == 0
    [letter] = dead_letters_of(line, bad)
    assert json.loads(letter.value or b"")["job_id"] == bad
    line.check(line.put(BETWEEN_FAULTS))


def test_a_dead_letter_too_large_for_the_broker_leaves_its_headers(
    line: JobLine, broker: MockBroker
) -> None:
    # With its batch, and then by itself.
    broker.fail(Api.PRODUCE, *[Error.MESSAGE_TOO_LARGE] * 2, broker=DEAD_LETTERS)
    bad = put_rejected(line)
    line.wait_for_end([bad])
    [letter] = dead_letters_of(line, bad)
    assert letter.value is None
    assert int(letter.headers["x-original-size"]) > 0
    line.check(line.put(BETWEEN_FAULTS))


def test_no_commit_passes_a_dead_letter_without_an_acknowledgement(
    line: JobLine, broker: MockBroker
) -> None:
    ends = [end for _, end in line.places()]
    broker.set_down(DEAD_LETTERS)
    try:
        bad = put_rejected(line)
        [held] = [number for number in range(4) if line.end_of(number) > ends[number]]
        ids = line.put(BETWEEN_FAULTS)
        line.wait_for_end(ids)
        # Commits of the other partitions show that the committer has run.
        line.wait_until_committed(except_for=held)
        assert line.committed_in(held) == ends[held]
        assert line.open([bad]) == [bad]
    finally:
        broker.set_up(DEAD_LETTERS)
    line.wait_for_end([bad])
    assert len(dead_letters_of(line, bad)) >= 1
    line.check(ids)
