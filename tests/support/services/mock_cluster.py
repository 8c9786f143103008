"""librdkafka's mock cluster as a program: commands as JSON lines, until stdin closes.

`python mock_cluster.py BROKERS` prints `{"value": BOOTSTRAP}`. Every line of stdin,
`[name, argument, ...]`, is answered by `{"value": ...}` or `{"error": ...}`. The names are the
methods of `MockCluster` below, which follow rdkafka_mock.h (librdkafka 2.16).
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int16, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Final

# name: (restype, argtypes after the cluster)
_FUNCTIONS: Final[dict[str, tuple[Any, list[Any]]]] = {
    "cluster_bootstraps": (c_char_p, []),
    "group_initial_rebalance_delay_ms": (None, [c_int32]),
    "topic_create": (c_int, [c_char_p, c_int, c_int]),
    "topic_set_error": (None, [c_char_p, c_int]),
    "partition_set_leader": (c_int, [c_char_p, c_int32, c_int32]),
    "partition_delete_records": (c_int, [c_char_p, c_int32, c_int64]),
    "coordinator_set": (c_int, [c_char_p, c_char_p, c_int32]),
    "broker_set_down": (c_int, [c_int32]),
    "broker_set_up": (c_int, [c_int32]),
    "broker_set_rtt": (c_int, [c_int32, c_int]),
    "broker_set_host_port": (c_int, [c_int32, c_char_p, c_int]),
    "broker_error_stack_cnt": (c_int, [c_int32, c_int16, POINTER(c_size_t)]),
    "push_request_errors_array": (None, [c_int16, c_size_t, POINTER(c_int)]),
    "clear_request_errors": (None, [c_int16]),
    "start_request_tracking": (None, []),
    "clear_requests": (None, []),
    "get_requests": (POINTER(c_void_p), [POINTER(c_size_t)]),
}


class MockError(RuntimeError):
    """librdkafka refused a command."""


class MockCluster:
    """Brokers numbered from 1 on free ports of 127.0.0.1; topics have one replica each."""

    def __init__(self, brokers: int) -> None:
        self._library = ctypes.CDLL(str(_library()))
        error = ctypes.create_string_buffer(512)
        new = self._library.rd_kafka_new
        new.restype = c_void_p
        new.argtypes = [c_int, c_void_p, c_char_p, c_size_t]
        handle = new(0, None, error, len(error))
        if not handle:
            raise MockError(error.value.decode())
        cluster = self._library.rd_kafka_mock_cluster_new
        cluster.restype = c_void_p
        cluster.argtypes = [c_void_p, c_int]
        self._cluster = cluster(handle, brokers)
        self._call("group_initial_rebalance_delay_ms", 0)

    def _call(self, name: str, *arguments: Any) -> Any:
        function = getattr(self._library, f"rd_kafka_mock_{name}")
        function.restype, given = _FUNCTIONS[name]
        function.argtypes = [c_void_p, *given]
        encoded = [part.encode() if isinstance(part, str) else part for part in arguments]
        result = function(self._cluster, *encoded)
        if function.restype is c_int and result:
            raise MockError(f"{name}{arguments}: librdkafka error {result}")
        return result

    # --- commands ---------------------------------------------------------------------------------

    def bootstrap(self) -> str:
        return str(self._call("cluster_bootstraps").decode())

    def create_topic(self, name: str, partitions: int) -> None:
        self._call("topic_create", name, partitions, 1)

    def set_topic_error(self, name: str, error: int) -> None:
        self._call("topic_set_error", name, error)

    def set_leader(self, topic: str, partition: int, broker: int) -> None:
        self._call("partition_set_leader", topic, partition, broker)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self._call("partition_delete_records", topic, partition, before)

    def set_coordinator(self, group: str, broker: int) -> None:
        self._call("coordinator_set", "group", group, broker)

    def set_down(self, broker: int) -> None:
        self._call("broker_set_down", broker)

    def set_up(self, broker: int) -> None:
        self._call("broker_set_up", broker)

    def set_rtt(self, broker: int, milliseconds: int) -> None:
        self._call("broker_set_rtt", broker, milliseconds)

    def advertise(self, broker: int, host: str, port: int) -> None:
        self._call("broker_set_host_port", broker, host, port)

    def push_errors(self, api: int, errors: Sequence[int]) -> None:
        self._call("push_request_errors_array", api, len(errors), (c_int * len(errors))(*errors))

    def clear_errors(self, api: int) -> None:
        self._call("clear_request_errors", api)

    def push_broker_errors(self, broker: int, api: int, errors: Sequence[int]) -> None:
        """Push errors for one broker; `errors_left` counts the remaining ones."""
        push = self._library.rd_kafka_mock_broker_push_request_error_rtts
        push.restype = c_int
        push.argtypes = [c_void_p, c_int32, c_int16, c_size_t]
        pairs = [c_int(number) for error in errors for number in (error, 0)]
        if failed := push(self._cluster, broker, api, len(errors), *pairs):
            raise MockError(f"push_broker_errors: librdkafka error {failed}")

    def errors_left(self, broker: int, api: int) -> int:
        count = c_size_t(0)
        self._call("broker_error_stack_cnt", broker, api, byref(count))
        return count.value

    def track_requests(self) -> None:
        self._call("clear_requests")
        self._call("start_request_tracking")

    def requests(self) -> list[tuple[int, int, int]]:
        """Return broker, ApiKey and microseconds of every request since `track_requests`."""
        count = c_size_t(0)
        array = self._call("get_requests", byref(count))
        found = [self._request(c_void_p(array[index])) for index in range(count.value)]
        for index in range(count.value):
            self._library.rd_kafka_mock_request_destroy(c_void_p(array[index]))
        return found  # the array itself, a few bytes, is freed with the process

    def _request(self, request: c_void_p) -> tuple[int, int, int]:
        self._library.rd_kafka_mock_request_api_key.restype = c_int16
        self._library.rd_kafka_mock_request_id.restype = c_int32
        self._library.rd_kafka_mock_request_timestamp.restype = c_int64
        return (
            self._library.rd_kafka_mock_request_id(request),
            self._library.rd_kafka_mock_request_api_key(request),
            self._library.rd_kafka_mock_request_timestamp(request),
        )


def _library() -> Path:
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise MockError("confluent-kafka is not installed")
    package = Path(spec.origin).parent
    # Wheels keep bundled libraries beside the package on Linux, inside it on macOS.
    for folder in (package.with_name("confluent_kafka.libs"), package / ".dylibs"):
        for library in sorted(folder.glob("librdkafka*")):
            return library
    raise MockError(f"no librdkafka beside {package}")


def _answer(cluster: MockCluster, line: str) -> dict[str, Any]:
    name, *arguments = json.loads(line)
    try:
        return {"value": getattr(cluster, name)(*arguments)}
    except (MockError, ctypes.ArgumentError) as error:
        return {"error": str(error)}


def main() -> None:
    cluster = MockCluster(int(sys.argv[1]))
    print(json.dumps({"value": cluster.bootstrap()}), flush=True)  # noqa: T201
    for line in sys.stdin:
        print(json.dumps(_answer(cluster, line)), flush=True)  # noqa: T201
    # librdkafka's destructors would join its threads; the exit of the process suffices.
    os._exit(0)


if __name__ == "__main__":
    main()
