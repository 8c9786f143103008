"""A real gateway for tests: `python -m dragoman_gateway` on free ports."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from support.processes.child_process import ChildProcess
from support.services.ports import free_ports


class GatewayProcess(ChildProcess):
    """The gateway in front of one Kafka topic and one Redis; `settings` by dotted name."""

    def __init__(
        self,
        folder: Path,
        *,
        kafka: str,
        redis: str,
        topic: str,
        settings: Mapping[str, Any] | None = None,
        name: str = "gateway",
    ) -> None:
        self.port, self.admin_port = free_ports(2)
        self.settings = {
            "kafka.bootstrap_servers": kafka,
            "kafka.topics": [topic],
            "kafka.group_id": f"{topic}-group",
            "kafka.dead_letter_topic": f"{topic}-dead",
            "redis.url": redis,
            "serve.port": self.port,
            "serve.admin_port": self.admin_port,
            **(settings or {}),
        }
        pairs = (("--set", _pair(*setting)) for setting in self.settings.items())
        argv = [
            sys.executable,
            "-m",
            "dragoman_gateway",
            *(part for pair in pairs for part in pair),
        ]
        super().__init__(argv, log=folder / f"{name}.log")

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.port}"

    def ready(self, timeout_s: float = 30.0) -> Self:
        """Wait until it answers."""
        self.wait_for(self._answers, timeout_s=timeout_s, what="/health")
        return self

    def translated(self, text: str) -> int:
        """Ask for one text as LibreTranslate's clients do, and return the status of the answer."""
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        request = urllib.request.Request(  # noqa: S310  http
            f"{self.url}/translate", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=70) as answer:  # noqa: S310  http
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/health", timeout=5
            ) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def metric(self, name: str) -> float:
        """Return the sum of all samples of one of its metrics."""
        url = f"http://127.0.0.1:{self.admin_port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if line.startswith((f"{name}{{", f"{name} ")))
        return sum(float(value) for _, value in rows)


def _pair(name: str, value: Any) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"
