"""Real workers for tests: `dragoman-worker run`, or one replica without a supervisor."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import psutil

from support.processes.child_process import ChildProcess, argv_of, command
from support.processes.crash_points import start_replica
from support.processes.fork_server import Forked
from support.services.ports import free_ports


class WorkerProcess(ChildProcess):
    """`dragoman-worker run` with the echo engine, unless `settings` set another.

    `settings` maps dotted names to values. The dead-letter topic is `<topic>-dead`, the group
    `<topic>-group`. A start costs 5 s of CPU time: use `ForkedWorker` where no supervisor is under
    test.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kafka: str,
        redis: str,
        topic: str,
        settings: Mapping[str, Any] | None = None,
        name: str = "worker",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_ports(1)[0]
        self.dead_letter_topic = f"{topic}-dead"
        self.settings = {
            "kafka.bootstrap_servers": kafka,
            "kafka.topics": [topic],
            "kafka.dead_letter_topic": self.dead_letter_topic,
            "kafka.group_id": f"{topic}-group",
            "kafka.session_timeout_s": 6,
            "redis.url": redis,
            "engine.kind": "echo",
            "engine.echo.faults": True,
            "retry.initial_s": 0.01,
            "shutdown.grace_s": 10,
            "http.port": self.port,
            **(settings or {}),
        }
        self.env = dict(env or {})
        pairs = (("--set", _pair(*setting)) for setting in self.settings.items())
        argv = command("dragoman-worker", "run", *(part for pair in pairs for part in pair))
        super().__init__(argv, log=folder / f"{name}.log", env=env)

    def ready(self, timeout_s: float = 30.0) -> Self:
        """Wait until it claims jobs."""
        self.wait_for(self._is_ready, timeout_s=timeout_s, what="/readyz")
        return self

    def replicas(self) -> list[psutil.Process]:
        """Return the processes of its replicas that run now."""
        return [child for child in psutil.Process(self.pid).children() if _is_replica(child)]

    def _is_ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of one of its pages; status 0 while nothing listens."""
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """Return the sum of all samples of one metric, 0 without any."""
        return sum_of(name, self.get("/metrics")[1])


def sum_of(name: str, page: str) -> float:
    """Return the sum of all samples of one metric on a page, 0 without any."""
    lines = page.splitlines()
    rows = (line.rsplit(" ", 1) for line in lines if line.startswith((name + "{", name + " ")))
    return sum(float(value) for _, value in rows)


class ForkedWorker(WorkerProcess):
    """One replica without a supervisor, forked from a server that has imported the worker.

    It serves the same pages and takes the same settings as `WorkerProcess`, starts in 0.3 s, and
    exits where a supervisor would restart it.
    """

    def start(self) -> Self:
        """Fork the replica."""
        assert not self.env, "a forked replica shares the environment of the fork server"
        self.log.touch()  # the child opens it later than a test may read it
        self._process = Forked(start_replica(self.settings, None, self.log))
        return self


def _is_replica(child: psutil.Process) -> bool:
    return "replica" in " ".join(argv_of(child)).split()  # a forked one has a title


def _pair(name: str, value: Any) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"
