"""Embedded Kafka broker: the mock cluster of the confluent-kafka wheel's librdkafka.

The mock cluster was made for librdkafka's own tests. Here it runs in a separate process:
`python -m dragoman_demo.broker --topic NAME:COUNT` prints one JSON line,
`{"bootstrap": "127.0.0.1:PORT"}`, and serves until its stdin closes or it receives SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from dragoman_connections.terminal import how_to_install, print_to
from dragoman_demo.child import ChildFailed, stop

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
        self._process: asyncio.subprocess.Process | None = None
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
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dragoman_demo.broker",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
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

    async def _read_bootstrap(self, process: asyncio.subprocess.Process) -> str:
        line = b""
        if process.stdout is not None:
            async with asyncio.timeout(_START_S):
                line = await process.stdout.readline()
        if not line:
            raise ChildFailed(f"the embedded broker did not start: {self._last_error()}")
        return str(json.loads(line)["bootstrap"])

    async def _stop(self) -> None:
        if self._process is not None:
            await stop(self._process, within_s=_STOP_S)
            # asyncio keeps the pipe's transport until it has read the end of the stream.
            if self._process.stdout is not None:
                await self._process.stdout.read()
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
        raise ChildFailed(f"confluent-kafka is not installed; {how_to_install('demo')}")
    package = Path(spec.origin).parent
    # Wheels keep bundled libraries beside the package on Linux, inside it on macOS.
    for folder in (package.with_name("confluent_kafka.libs"), package / ".dylibs"):
        for library in sorted(folder.glob("librdkafka*")):
            return library
    raise ChildFailed(f"no librdkafka beside {package}: install confluent-kafka from its wheel")


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.rpartition(":")
    if not name or not partitions.isdigit() or int(partitions) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:PARTITIONS")
    return name, int(partitions)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stdin closes or SIGTERM terminates the process."""
    parser = argparse.ArgumentParser(prog="dragoman_demo.broker", description=__doc__)
    parser.add_argument("--topic", type=_topic, action="append", default=[], dest="topics")
    topics = dict(parser.parse_args(argv).topics)
    try:
        cluster = _MockCluster(topics)
    except ChildFailed as error:
        print_to(sys.stderr, str(error))
        return 1
    print(json.dumps({"bootstrap": cluster.bootstrap}), flush=True)
    # os.read, not sys.stdin: the interpreter cannot exit while a thread holds a buffer's lock.
    while os.read(0, 1024):
        pass
    # A normal exit would run librdkafka's destructors, which join its threads.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
