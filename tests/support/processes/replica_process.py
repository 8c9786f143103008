"""One forked replica without pages, which starts in 0.3 s and may die at a chosen point."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

from support.processes.crash_points import Point, start_replica

_EXIT_S = 90.0


class ReplicaProcess:
    """One replica with the echo engine on `topic`; at `point` it dies or loses replies.

    Dead letters go to `<topic>-dead`, the group is `<topic>-group`, as with `WorkerProcess`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kafka: str,
        redis: str,
        topic: str,
        settings: Mapping[str, Any] | None = None,
        point: Point | None = None,
        name: str = "replica",
    ) -> None:
        self._point = point
        self._log = folder / f"{name}.log"
        self._process: BaseProcess | None = None
        self._settings = {
            "kafka.bootstrap_servers": kafka,
            "kafka.topics": [topic],
            "kafka.dead_letter_topic": f"{topic}-dead",
            "kafka.group_id": f"{topic}-group",
            "kafka.session_timeout_s": 2,
            "redis.url": redis,
            "engine.kind": "echo",
            "engine.echo.faults": True,
            "retry.initial_s": 0.01,
            "http.port": 0,
            **(settings or {}),
        }

    def __enter__(self) -> Self:
        self._process = start_replica(self._settings, self._point, self._log)
        return self

    def __exit__(self, *_: object) -> None:
        self._started.kill()
        self._started.join(10)

    @property
    def running(self) -> bool:
        return self._started.is_alive()

    def terminate(self) -> None:
        """Send SIGTERM. Earlier than its first sign of work it has no handler."""
        self._started.terminate()

    def kill(self) -> None:
        """Send SIGKILL and wait until it has exited."""
        self._started.kill()
        self._started.join(_EXIT_S)

    def wait(self) -> int | None:
        """Return its exit status, negative for a signal; None if it is still running after 90 s."""
        self._started.join(_EXIT_S)
        return self._started.exitcode

    @property
    def output(self) -> str:
        """Everything it and earlier replicas of this name have logged."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def _started(self) -> BaseProcess:
        assert self._process is not None, "not started"
        return self._process
