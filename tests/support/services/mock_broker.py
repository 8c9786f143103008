"""A Kafka cluster that answers with chosen errors: librdkafka's mock cluster.

The cluster of tests/support/services/mock_cluster.py runs in a separate process, so it cannot
affect the test's interpreter. It supports groups, commits and idempotent producers. Records live
in memory, up to 5 MiB per partition. It has no administration, no TLS and no passwords.
"""

from __future__ import annotations

import json
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_PROGRAM = Path(__file__).with_name("mock_cluster.py")


class Api(IntEnum):
    """Requests of Kafka's protocol that tests let fail."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    SYNC_GROUP = 14
    INIT_PRODUCER_ID = 22


class Error(IntEnum):
    """Kafka's error codes; DISCONNECT is librdkafka's code for a cut connection."""

    DISCONNECT = -195
    UNKNOWN = -1
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    ILLEGAL_GENERATION = 22
    UNKNOWN_MEMBER = 25
    REBALANCE_IN_PROGRESS = 27
    OUT_OF_ORDER_SEQUENCE = 45
    FENCED_INSTANCE_ID = 82


class MockBroker:
    """`brokers` mock brokers, numbered from 1, while the context is open."""

    def __init__(self, brokers: int = 1) -> None:
        self.brokers = range(1, brokers + 1)
        self.bootstrap = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), str(len(self.brokers))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # librdkafka logs the errors that it was asked for
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        self.bootstrap = str(self._answer())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    # --- topics and leaders -----------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, *, leader: int | None = None) -> str:
        """Create a topic; with `leader`, that broker leads all of its partitions."""
        self._do("create_topic", name, partitions)
        if leader is not None:
            for partition in range(partitions):
                self.set_leader(name, partition, leader)
        return name

    def set_leader(self, topic: str, partition: int, broker: int) -> None:
        """Move a partition to another broker; -1 leaves it without a leader."""
        self._do("set_leader", topic, partition, broker)

    def set_coordinator(self, group: str, broker: int) -> None:
        """Move a group to another broker."""
        self._do("set_coordinator", group, broker)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Drop the records below an offset, as retention does."""
        self._do("delete_records", topic, partition, before)

    # --- faults -----------------------------------------------------------------------------------

    def fail(self, api: Api, *errors: Error, broker: int | None = None) -> None:
        """Answer the next requests with these errors, one each, at one broker or at any."""
        if broker is None:
            self._do("push_errors", api, errors)
        else:
            self._do("push_broker_errors", broker, api, errors)

    def failures_left(self, api: Api, broker: int) -> int:
        """Return how many errors pushed for this broker have met no request yet."""
        return int(self._do("errors_left", broker, api))

    def forgive(self, api: Api) -> None:
        """Drop the errors that were pushed for all brokers."""
        self._do("clear_errors", api)

    def set_down(self, broker: int = -1) -> None:
        """Cut all connections of a broker (-1: of every one) and accept none."""
        self._do("set_down", broker)

    def set_up(self, broker: int = -1) -> None:
        """Accept connections again."""
        self._do("set_up", broker)

    def set_rtt(self, broker: int, seconds: float) -> None:
        """Delay the answers of a broker."""
        self._do("set_rtt", broker, round(seconds * 1000))

    def advertise(self, broker: int, port: int) -> None:
        """Advertise 127.0.0.1 and this port to clients as the broker's address."""
        self._do("advertise", broker, "127.0.0.1", port)

    # --- requests ---------------------------------------------------------------------------------

    def track_requests(self) -> None:
        """Record requests from now on."""
        self._do("track_requests")

    def count(self, api: Api) -> int:
        """Return the number of requests of one kind since `track_requests`."""
        return sum(1 for _, found, _ in self._do("requests") if found == api)

    # --- internals --------------------------------------------------------------------------------

    def _do(self, name: str, *arguments: Any) -> Any:
        assert self._process is not None, "not started"
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        return self._answer()

    def _answer(self) -> Any:
        assert self._process is not None, "not started"
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the mock cluster exited with {self._process.wait(5)}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]
