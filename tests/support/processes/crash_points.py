"""Real replicas as forked processes, which can kill themselves at a chosen point.

The product has no failpoints: the child wraps one method of one adapter before it runs the app.
Children are forked from a server that has imported the worker and read its language data once: a
start costs 0.3 s instead of 4.5 s of CPU time.
"""

from __future__ import annotations

import inspect
import itertools
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, Literal

import uvloop
from aiokafka import AIOKafkaConsumer
from redis.exceptions import ConnectionError as RedisConnectionError

from dragoman_connections.settings import load_settings
from dragoman_worker import log
from dragoman_worker.app import App
from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.engines.vllm.patches import fork
from dragoman_worker.errors import Unavailable
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.kafka.publisher import KafkaDeadLetters, KafkaResults
from dragoman_worker.process.parent_link import ParentLink
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.stores.redis import RedisStore
from support.processes.fork_server import fork_server

When = Literal["before", "after", "reply lost"]

SEAMS: Final[Mapping[str, tuple[type, str]]] = {
    "poll": (KafkaConsumer, "poll"),
    "claim": (RedisStore, "claim"),
    "engine": (EchoEngine, "generate"),
    "dead letter": (KafkaDeadLetters, "publish"),
    "finish": (RedisStore, "finish"),
    "announce": (RedisStore, "announce"),
    "results": (KafkaResults, "publish"),
    "complete": (KafkaConsumer, "complete"),
    "commit": (AIOKafkaConsumer, "commit"),
    "release": (RedisStore, "release"),
}
"""The calls behind the arrows of the contract's section 5, and behind `claim` and `release`."""


@dataclass(frozen=True, slots=True)
class Point:
    """Die `before` or `after` the `passage`-th call of a seam.

    With `reply lost` the process lives: the first `passage` calls take effect and then raise
    Unavailable.
    """

    when: When
    seam: str
    passage: int = 1

    def __str__(self) -> str:
        return f"{self.when} {self.seam}" + (f" {self.passage}" if self.passage > 1 else "")


def start_replica(settings: Mapping[str, Any], point: Point | None, log_file: Path) -> BaseProcess:
    """Fork a replica with these settings (dotted names to values)."""
    server = fork_server(vllm=settings.get("engine.kind") == "vllm")
    # Not a daemon: multiprocessing would send SIGTERM to it when the tests exit.
    process = server.Process(target=_replica, args=(dict(settings), point, str(log_file)))
    process.start()
    return process


def _replica(settings: dict[str, Any], point: Point | None, log_file: str) -> None:
    os.setsid()
    stream = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    if point is not None:
        _arm(point)
    made = load_settings(WorkerSettings, None, settings)
    if made.engine.kind == "vllm":
        fork.prepare(ParentLink(socket.socketpair()[0]))
    log.configure(made.log, worker_id=made.worker_id)
    uvloop.run(App(made).run())


def _arm(point: Point) -> None:
    owner, name = SEAMS[point.seam]
    original = getattr(owner, name)
    if point.when == "reply lost":
        setattr(owner, name, _losing(original, point.passage))
        return
    passages = itertools.count(1)

    def passing(answer: object) -> None:
        empty_poll = point.seam == "poll" and not answer
        if not empty_poll and next(passages) == point.passage:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, _watched(original, passing, early=point.when == "before"))


def _watched(original: Any, passing: Any, *, early: bool) -> Any:
    if not inspect.iscoroutinefunction(original):

        def call(*args: Any, **options: Any) -> Any:
            if early:
                passing("before")
            answer = original(*args, **options)
            if not early:
                passing(answer)
            return answer

        return call

    async def awaited(*args: Any, **options: Any) -> Any:
        if early:
            passing("before")
        answer = await original(*args, **options)
        if not early:
            passing(answer)
        return answer

    return awaited


def _losing(original: Any, times: int) -> Any:
    calls = itertools.count(1)

    async def awaited(*args: Any, **options: Any) -> Any:
        answer = await original(*args, **options)
        if next(calls) <= times:
            raise Unavailable("the reply was lost") from RedisConnectionError("cut")
        return answer

    return awaited
