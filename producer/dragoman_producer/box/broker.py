"""Embedded Kafka broker: the mock cluster of the confluent-kafka wheel's librdkafka.

The mock cluster was made for librdkafka's own tests. Here it runs in a separate process:
`python -m dragoman_producer.box.broker DESCRIPTOR --topic NAME:COUNT` sends its address to its
parent, and serves until that closes the channel.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from dragoman_connections.child import Channel, ChannelClosed, ChildProcess, connected
from dragoman_connections.terminal import how_to_install, print_to
from dragoman_producer.box.linked_child import ChildFailed, own_environment

_START_S = 20.0
_STOP_S = 5.0


class EmbeddedBroker:
    """A Kafka broker in a child process, which runs while the context is open.

    It speaks Kafka's protocol with groups, commits and idempotent producers. It is for demos and
    tests only: records are kept in memory, at most 5 MiB or 100,000 per partition (then the oldest
    are dropped), without TLS, passwords or administration. It terminates with this process.

    `topics` maps names to numbers of partitions. Any other topic gets 4 when it is first used.
    """

    def __init__(self, topics: Mapping[str, int]) -> None:
        self._topics = dict(topics)
        self._process: ChildProcess | None = None
        self._files = ExitStack()
        self._errors: IO[bytes] | None = None
        self.bootstrap = ""

    @property
    def pid(self) -> int:
        """Process id of the broker. Raises RuntimeError before the start."""
        if self._process is None:
            raise RuntimeError("the embedded broker is not started")
        return self._process.pid

    async def __aenter__(self) -> Self:
        arguments = [f"--topic={name}:{count}" for name, count in self._topics.items()]
        self._errors = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        self._process = await ChildProcess.start(
            lambda descriptor: (
                *(
                    sys.executable,
                    "-P",
                    "-m",
                    "dragoman_producer.box.broker",
                    descriptor,
                    *arguments,
                ),
            ),
            env=own_environment(),
            stdout=self._errors,
            stderr=self._errors,
        )
        try:
            self.bootstrap = await self._read_bootstrap(self._process)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    async def wait(self) -> int:
        """Return the exit status once the broker has exited by itself."""
        if self._process is None:
            raise RuntimeError("the embedded broker is not started")
        return await self._process.wait()

    async def _read_bootstrap(self, process: ChildProcess) -> str:
        try:
            async with asyncio.timeout(_START_S):
                return (await process.channel.receive()).decode()
        except ChannelClosed:
            await process.wait()
            raise ChildFailed(f"the embedded broker did not start: {self._last_error()}") from None

    async def _stop(self) -> None:
        if self._process is not None:
            await self._process.end(_STOP_S)
        self._files.close()

    def _last_error(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed no error"


class _MockCluster:
    """Mock cluster of librdkafka; https://github.com/confluentinc/librdkafka, rdkafka_mock.h."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        library = ctypes.CDLL(str(_library()))
        error = ctypes.create_string_buffer(512)
        new = library.rd_kafka_new
        new.restype = ctypes.c_void_p
        new.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        handle = new(0, None, error, len(error))
        if not handle:
            raise ChildFailed(error.value.decode())
        new_cluster = library.rd_kafka_mock_cluster_new
        new_cluster.restype = ctypes.c_void_p
        new_cluster.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._cluster = ctypes.c_void_p(new_cluster(handle, 1))
        self._library = library
        # A group of one worker need not wait 3 s for others.
        library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, ctypes.c_int32(0))
        for name, partitions in topics.items():
            self._create(name, partitions)

    def _create(self, name: str, partitions: int) -> None:
        create = self._library.rd_kafka_mock_topic_create
        create.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
        failed = create(self._cluster, name.encode(), partitions, 1)
        if failed:
            raise ChildFailed(f"the topic {name} could not be created (librdkafka error {failed})")

    @property
    def bootstrap(self) -> str:
        bootstraps = self._library.rd_kafka_mock_cluster_bootstraps
        bootstraps.restype = ctypes.c_char_p
        return str(bootstraps(self._cluster).decode())


def _library() -> Path:
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise ChildFailed(f"confluent-kafka is not installed; {how_to_install('box')}")
    package = Path(spec.origin).parent
    # Wheels keep bundled libraries beside the package on Linux, inside it on macOS.
    for folder in (package.with_name("confluent_kafka.libs"), package / ".dylibs"):
        for library in sorted(folder.glob("librdkafka*")):
            return library
    raise ChildFailed(
        f"librdkafka is not next to {package}: install confluent-kafka from its wheel"
    )


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.rpartition(":")
    if not name or not partitions.isdigit() or int(partitions) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:PARTITIONS")
    return name, int(partitions)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the parent closes the channel or dies."""
    parser = argparse.ArgumentParser(prog="dragoman_producer.box.broker", description=__doc__)
    parser.add_argument("descriptor", type=int)
    parser.add_argument("--topic", type=_topic, action="append", default=[], dest="topics")
    arguments = parser.parse_args(argv)
    parent = Channel(connected(arguments.descriptor))
    try:
        cluster = _MockCluster(dict(arguments.topics))
    except ChildFailed as error:
        print_to(sys.stderr, str(error))
        return 1
    parent.send(cluster.bootstrap.encode())
    while parent.receive() is not None:
        pass
    # A normal exit would run librdkafka's destructors, which join its threads.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
