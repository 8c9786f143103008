"""Process of `dragoman-worker run` for benchmarks, which leaves nothing behind.

Needs nothing of tests/, so that it runs where only the packages and benchmarks/ are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pipeline import worker_command


@dataclass
class Worker:
    """Worker process on a port of its own; settings by dotted name, output in `folder`."""

    name: str
    settings: dict[str, Any]
    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0

    def start(self) -> None:
        """Start to load, without waiting."""
        self.port = free_port()
        settings = {**self.settings, "http.port": self.port, "worker_id": self.name}
        self.began = time.monotonic()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                worker_command(settings), stdout=log, stderr=log, start_new_session=True
            )

    async def ready(self, timeout_s: float) -> float:
        """Return the seconds until it was ready; exit with its last output if it is not."""
        while (await asyncio.to_thread(self.page, "/readyz"))[0] != 200:
            late = time.monotonic() - self.began > timeout_s
            if late or self._started.poll() is not None:
                raise SystemExit(f"{self.name} does not work:\n{self._log.read_text()[-4000:]}")
            await asyncio.sleep(0.2)
        return time.monotonic() - self.began

    def page(self, path: str) -> tuple[int, str]:
        """Return status and body of a page; status 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        lines = self.page("/metrics")[1].splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if line.startswith((name + "{", name + " ")))
        return sum(float(value) for _, value in rows)

    async def drained(self, timeout_s: float) -> int:
        """Send SIGTERM to the command alone; return its exit status."""
        self._started.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._started.wait, timeout_s)

    def end(self) -> None:
        """Kill all remaining processes."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # a session of its own, so a group too
            self.process.wait(60)

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise RuntimeError(f"{self.name} is not started")
        return self.process


@asynccontextmanager
async def working(worker: Worker, timeout_s: float) -> AsyncIterator[float]:
    """Yield the seconds from its start until it is ready, while it accepts jobs."""
    if worker.process is None:
        worker.start()
    try:
        yield await worker.ready(timeout_s)
    finally:
        worker.end()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def engine_processes(pid: int) -> list[psutil.Process]:
    """Return vLLM's engine processes below a process; nothing if it has exited."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [each for each in below if "EngineCore" in each.name() + " ".join(each.cmdline())]
