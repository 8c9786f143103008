"""How do tests run a real worker? `dragoman-worker run` as a child, on settings of their own."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from support.processes.child_process import ChildProcess, command
from support.services.ports import free_ports


class WorkerProcess(ChildProcess):
    """A worker with the echo engine, unless `settings` say otherwise (dotted names to values)."""

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
        options = {
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
        pairs = [part for name, value in options.items() for part in ("--set", _pair(name, value))]
        argv = command("dragoman-worker", "run", *pairs)
        super().__init__(argv, log=folder / f"{name}.log", env=env)

    def ready(self, timeout_s: float = 30.0) -> Self:
        """Wait until it takes jobs."""
        self.wait_for(self._is_ready, timeout_s=timeout_s, what="/readyz")
        return self

    def _is_ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of one of its pages; status 0 while nobody listens."""
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """The sum of all samples of one metric."""
        lines = self.get("/metrics")[1].splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if line.startswith((name + "{", name + " ")))
        return sum(float(value) for _, value in rows)


def _pair(name: str, value: Any) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"
